#pragma once
// The beginning of log lines, the same for the daemons and the library, so that one pattern finds all of them:
//
//   2026-11-23T08:40:11.123+0000 info tributary-manager: serving on 10.0.0.1:7470
//
// The library writes "tributary:" and the rank into its texts (kLibraryLogFormat).
namespace tributary::service {

/// spdlog's pattern for a daemon, whose logger has the program's name.
inline constexpr char kLogFormat[] = "%Y-%m-%dT%H:%M:%S.%e%z %l %n: %v";
/// spdlog's pattern inside a user's process.
inline constexpr char kLibraryLogFormat[] = "%Y-%m-%dT%H:%M:%S.%e%z %l %v";

}  // namespace tributary::service
