#include "client/cli/nccl_check/session.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tributary::cli::nccl_check {
namespace {

/// Reads NCCL_DEBUG as NCCL does. The default is WARN, so that a failed check always shows its reasons.
abi::LogLevel wanted_level() {
  const char* text = std::getenv("NCCL_DEBUG");
  if (text == nullptr || std::strcmp(text, "WARN") == 0) return abi::LogLevel::warn;
  if (std::strcmp(text, "INFO") == 0) return abi::LogLevel::info;
  return std::strcmp(text, "TRACE") == 0 ? abi::LogLevel::trace : abi::LogLevel::version;
}

__attribute__((format(printf, 5, 6))) void log(abi::LogLevel level, unsigned long, const char* file, int line,
                                               const char* format, ...) {
  static const abi::LogLevel wanted = wanted_level();
  if (level > wanted) return;
  std::array<char, 1024> text{};
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  if (level == abi::LogLevel::warn) {
    std::fprintf(stderr, "%s:%d NCCL WARN %s\n",
                 std::strrchr(file, '/') == nullptr ? file : std::strrchr(file, '/') + 1, line, text.data());
  } else {
    std::fprintf(stderr, "NCCL INFO %s\n", text.data());
  }
}

}  // namespace

void say(int rank, const std::string& line) {
  std::printf("rank %d: %s\n", rank, line.c_str());
  std::fflush(stdout);
}

Session::Session(const Options& options, Bootstrap& bootstrap)
    : options_(options), bootstrap_(bootstrap), library_(options.plugin) {
  int net_version = 0, collnet_version = 0;
  net_ = library_.net(options.newest, &net_version);
  collnet_ = library_.collnet(options.newest, &collnet_version);
  say(rank(), "Loaded net plugin tributary (v" + std::to_string(net_version) + "), collnet plugin tributary (v" +
                  std::to_string(collnet_version) + ")");
  initialise();
}

// Makes the calls in the order of NCCL 2.28: net, then CollNet, then the properties of the first device.
void Session::initialise() {
  int devices = 0;
  require_success(net_->init(&net_context_, log), "net init");
  require_success(net_->devices(&devices), "net devices");
  require(devices > 0, "there is no network device");
  int collnet_devices = 0;
  collnet_on_ = collnet_->init(&collnet_context_, log) == Result::success &&
                collnet_->devices(&collnet_devices) == Result::success && collnet_devices > 0;
  Properties first;
  require_success(net_->properties(0, first), "getProperties");
  say(rank(), "device 0: " + first.name + ", " + std::to_string(first.speed_mbps) + " Mb/s, " +
                  (first.pci_path.empty() ? "not on PCI" : first.pci_path));
  const auto everybody = bootstrap_.all_gather_value(static_cast<std::uint8_t>(collnet_on_));
  collnet_on_everywhere_ = std::ranges::all_of(everybody, [](std::uint8_t on) { return on != 0; });
  if (collnet_on_) compare_devices();
  // Compare the numbers even with CollNet off: NCCL 2.30.3 and later end the job if they differ.
  const auto counts = bootstrap_.all_gather_value(collnet_devices);
  require(std::ranges::all_of(counts, [&](int count) { return count == counts.front(); }),
          "the ranks report different numbers of CollNet devices");
}

/// Checks that net devices and CollNet devices match: NCCL pairs them by name and index.
void Session::compare_devices() {
  int net_devices = 0, collnet_devices = 0;
  require_success(net_->devices(&net_devices), "net devices");
  require_success(collnet_->devices(&collnet_devices), "CollNet devices");
  for (int device = 0; device < collnet_devices; ++device) {
    Properties net, collnet;
    require_success(net_->properties(device < net_devices ? device : 0, net), "net getProperties");
    require_success(collnet_->properties(device, collnet), "CollNet getProperties");
    require(net.name == collnet.name,
            "device " + std::to_string(device) + " has one name in the net table and another in the CollNet table");
    require(collnet.collective_bytes_max >= 1 && collnet.collective_bytes_max <= abi::kTransferBytesMax,
            "maxCollBytes is out of NCCL's range");
  }
  Properties none;
  require(net_->properties(net_devices, none) != Result::success, "a device that does not exist has properties");
}

Session::~Session() {
  net_->finalize(net_context_);
  if (collnet_on_) collnet_->finalize(collnet_context_);
}

}  // namespace tributary::cli::nccl_check
