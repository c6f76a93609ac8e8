#include "client/plugins/mpi/settings.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace tributary::mpi {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void complain(std::string& mistake, std::string_view name, const std::string& value, std::string_view allowed) {
  mistake += std::string(name) + ": '" + value +
             "': this value has no meaning, the default holds (allowed: " + std::string(allowed) + "). ";
}

}  // namespace

bool read_bytes_min(const std::string& text, Settings& settings) {
  if (text == "auto") return true;
  if (text == "off") return settings.off = true;
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const std::string_view unit(rest, end);
  if (error != std::errc{} || !(unit.empty() || unit == "K" || unit == "M") || number > (1ULL << 40)) return false;
  settings.bytes_min = number << (unit == "K" ? 10 : unit == "M" ? 20 : 0);
  settings.measured = false;
  return true;
}

Settings settings_of_environment(std::string& mistake) {
  Settings settings;
  const std::string bytes = variable("TRIBUTARY_MPI_MIN_BYTES");
  if (!bytes.empty() && !read_bytes_min(bytes, settings)) {
    complain(mistake, "TRIBUTARY_MPI_MIN_BYTES", bytes, "auto, off, a number of bytes such as 65536 or 64K");
  }
  const std::string report = variable("TRIBUTARY_MPI_REPORT");
  const std::string level = variable("TRIBUTARY_LOG");
  settings.report = report == "1" || (report.empty() && (level == "info" || level == "debug" || level == "trace"));
  if (!report.empty() && report != "0" && report != "1") complain(mistake, "TRIBUTARY_MPI_REPORT", report, "0, 1");
  return settings;
}

}  // namespace tributary::mpi
