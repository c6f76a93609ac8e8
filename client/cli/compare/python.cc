#include "client/cli/compare/python.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "client/cli/cluster/child_process.h"

namespace tributary::cli {
namespace {

constexpr auto kLookLimit = std::chrono::seconds(20);
constexpr int kFoldersAbove = 4;
// Checks only whether PyTorch is installed, because its import takes seconds.
constexpr const char* kAsk = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)";

bool has_torch(const std::string& python) {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  auto process = ChildProcess::spawn(
      {.arguments = {python, "-c", kAsk}, .environment = current_environment(), .output = nowhere, .error = nowhere});
  if (nowhere >= 0) close(nowhere);
  if (!process) return false;
  const auto& status = process->wait_until(std::chrono::steady_clock::now() + kLookLimit);
  return status && status->good();
}

std::vector<std::string> candidates() {
  std::vector<std::string> found;
  if (const char* active = std::getenv("VIRTUAL_ENV"); active != nullptr && *active != '\0')
    found.push_back(std::string(active) + "/bin/python3");
  found.emplace_back("python3");
  std::error_code error;
  std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (int up = 0; up <= kFoldersAbove && folder.has_relative_path(); ++up, folder = folder.parent_path()) {
    const std::filesystem::path python = folder / "venv/bin/python3";
    if (std::filesystem::exists(python, error)) found.push_back(python.string());
  }
  return found;
}

}  // namespace

Result<std::string> find_python_with_torch(const std::string& wanted) {
  if (!wanted.empty()) {
    if (has_torch(wanted)) return wanted;
    return fail(Errc::unsupported, wanted + " has no PyTorch");
  }
  for (const std::string& python : candidates()) {
    if (has_torch(python)) return python;
  }
  return fail(Errc::unsupported, "no Python with PyTorch was found; name one with --python");
}

}  // namespace tributary::cli
