#pragma once
// How log lines begin, those of the daemons and of the library alike, so that one pattern finds all of them:
//
//   2026-11-23T08:40:11.123+0000 info tributary-manager: serving on 10.0.0.1:7470
//
// The library's lines say "tributary:" and the rank themselves (kLibraryLogFormat).
namespace tributary::service {

/// spdlog's pattern of a daemon, whose logger has the program's name.
inline constexpr char kLogFormat[] = "%Y-%m-%dT%H:%M:%S.%e%z %l %n: %v";
/// spdlog's pattern inside a user's process.
inline constexpr char kLibraryLogFormat[] = "%Y-%m-%dT%H:%M:%S.%e%z %l %v";

}  // namespace tributary::service
