#include "client/plugins/nccl/wrapped/other_plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>

extern "C" tributary::nccl::abi::NetV12 ncclNetPlugin_v12;

namespace tributary::nccl {
namespace {

/// Returns the loaded library, or nullptr; then `failure` has the loader's text.
void* open_library(const std::string& path, std::string& failure) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  const char* const text = dlerror();
  failure += (failure.empty() ? "" : "; ") + (text != nullptr ? std::string(text) : path + " cannot be loaded");
  return nullptr;
}

/// Looks for the library as NCCL looks for NCCL_NET_PLUGIN.
void* find_library(const std::string& name, std::string& failure) {
  if (void* const handle = open_library(name, failure); handle != nullptr) return handle;
  if (name.contains('/') || (name.starts_with("lib") && name.contains(".so"))) return nullptr;
  return open_library("libnccl-net-" + name + ".so", failure);
}

}  // namespace

OtherPlugin::OtherPlugin(std::string name) : name_(std::move(name)) {
  const std::string setting = "TRIBUTARY_NCCL_NET=" + name_;
  std::string reason;
  void* const handle = find_library(name_, reason);
  if (handle == nullptr) {
    failure_ = setting + " cannot be loaded: " + reason + ".";
    return;
  }
  for (int version = abi::kNetVersionOldest; version <= abi::kNetVersionNewest; ++version) {
    const std::string symbol = "ncclNetPlugin_v" + std::to_string(version);
    tables_[static_cast<std::size_t>(version)] = dlsym(handle, symbol.c_str());
  }
  if (tables_.back() == &ncclNetPlugin_v12) {
    failure_ = setting + " names this plugin itself; name another net plugin, or do not set the variable.";
  } else if (std::ranges::all_of(tables_, [](const void* table) { return table == nullptr; })) {
    failure_ = setting + " has none of the tables ncclNetPlugin_v6 to v12: it is no net plugin that can be used.";
  }
}

const OtherPlugin* OtherPlugin::process() {
  static const OtherPlugin* const one = []() -> const OtherPlugin* {
    const char* const name = std::getenv("TRIBUTARY_NCCL_NET");
    return name == nullptr || *name == '\0' ? nullptr : new OtherPlugin(name);
  }();
  return one;
}

}  // namespace tributary::nccl
