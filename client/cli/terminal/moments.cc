#include "client/cli/terminal/moments.h"

#include <chrono>
#include <ctime>

#include "service-kit/units.h"

namespace tributary::cli {
namespace {

constexpr std::int64_t kDay = 24LL * 3600;
constexpr std::int64_t kDaysMax = 366;

}  // namespace

std::int64_t unix_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string utc_text(std::int64_t unix_seconds) {
  const std::time_t time = unix_seconds;
  std::tm parts{};
  char text[32] = "";
  if (::gmtime_r(&time, &parts) == nullptr) return std::to_string(unix_seconds);
  const std::size_t bytes = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return {text, bytes};
}

Result<std::int64_t> parse_moment(const std::string& text) {
  if (const auto seconds = service::parse_number<std::uint32_t>(text)) return *seconds;
  for (const char* const form : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"}) {
    std::tm parts{};
    const char* const end = ::strptime(text.c_str(), form, &parts);
    if (end != nullptr && (*end == '\0' || std::string_view(end) == "Z")) return ::timegm(&parts);
  }
  return fail(Errc::bad_argument, "it is no point in time");
}

Result<std::int64_t> parse_long_time(const std::string& text) {
  const auto within = [](std::int64_t seconds) -> Result<std::int64_t> {
    if (seconds < 1) return fail(Errc::bad_argument, "it is below 1s");
    if (seconds > kDaysMax * kDay) return fail(Errc::bad_argument, "it is above 366d");
    return seconds;
  };
  if (text.ends_with('d')) {
    const auto days = service::parse_number<std::uint32_t>(std::string_view(text).substr(0, text.size() - 1));
    return days ? within(*days * kDay) : fail(Errc::bad_argument, "it is no whole number of days");
  }
  const auto time = service::parse_duration(text);
  if (!time) return std::unexpected(time.error());
  return within(std::chrono::floor<std::chrono::seconds>(*time).count());
}

}  // namespace tributary::cli
