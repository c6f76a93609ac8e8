#include "tests/system/soak/figures.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace tributary::soak {
namespace {

double count_entries(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error) return -1;
  return static_cast<double>(std::distance(begin(entries), end(entries)));
}

}  // namespace

std::optional<Sample> sample_process(pid_t pid, double seconds) {
  const std::string process = "/proc/" + std::to_string(pid);
  std::ifstream in(process + "/statm");
  double total_pages = 0, resident_pages = 0;
  if (!(in >> total_pages >> resident_pages)) return std::nullopt;
  const double page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  return Sample{seconds, resident_pages * page_bytes / (1 << 20), count_entries(process + "/fd"),
                count_entries(process + "/task")};
}

Trend trend_of(const std::vector<Sample>& samples, const std::function<double(const Sample&)>& figure) {
  if (samples.size() < 2) return {};
  const auto n = static_cast<double>(samples.size());
  double mean_x = 0, mean_y = 0, product = 0, square = 0;
  for (const Sample& s : samples) {
    mean_x += s.seconds / n;
    mean_y += figure(s) / n;
  }
  for (const Sample& s : samples) {
    product += (s.seconds - mean_x) * (figure(s) - mean_y);
    square += (s.seconds - mean_x) * (s.seconds - mean_x);
  }
  return {mean_y, product / square * (samples.back().seconds - samples.front().seconds)};
}

}  // namespace tributary::soak
