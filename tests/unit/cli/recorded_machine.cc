#include "tests/unit/cli/recorded_machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tributary::cli::doctor {
namespace {

namespace fs = std::filesystem;

std::string unescaped(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : ' ';
    if (text[i] != '\\' || (next != 'n' && next != '0')) {
      bytes += text[i];
      continue;
    }
    bytes += next == 'n' ? '\n' : '\0';
    ++i;
  }
  return bytes;
}

std::string sparse(const std::string& text) {
  std::string bytes(4096, '\0');
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t colon = word.find(':');
    std::size_t at = std::stoul(word.substr(0, colon), nullptr, 16);
    for (std::size_t i = colon + 1; i + 1 < word.size(); i += 2)
      bytes.at(at++) = static_cast<char>(std::stoul(word.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

}  // namespace

RecordedMachine::RecordedMachine(const std::string& name)
    : root_(testing::TempDir() + "tributary-" + name + "-" + std::to_string(getpid())) {
  fs::remove_all(root_);
  std::ifstream in(std::string(TRIBUTARY_MACHINES) + "/" + name + ".txt");
  if (!in) throw std::runtime_error("machines/" + name + ".txt cannot be read");
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.front() != '#') unpack(line);
  }
}

RecordedMachine::~RecordedMachine() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

void RecordedMachine::unpack(const std::string& line) {
  std::istringstream words(line);
  std::string path, kind;
  words >> path >> kind;
  if (path == "qos") {
    Qos& qos = qos_[kind];
    std::string word;
    words >> word;
    qos.pfc_enabled = static_cast<std::uint8_t>(std::stoul(word, nullptr, 16));
    while (words >> word)
      qos.dscp_priorities[static_cast<std::uint8_t>(std::stoul(word))] =
          static_cast<std::uint8_t>(std::stoul(word.substr(word.find(':') + 1)));
    return;
  }
  std::string rest;
  std::getline(words >> std::ws, rest);
  if (kind == "=") {
    write(path, unescaped(rest) + "\n");
  } else if (kind == "@") {
    write(path, sparse(rest));
  } else if (kind == "->") {
    fs::create_directories(fs::path(root_ + path).parent_path());
    if (!fs::exists(root_ + rest)) fs::create_directories(root_ + rest);
    fs::create_symlink(root_ + rest, root_ + path);
  } else {
    throw std::runtime_error("a line of a recorded machine cannot be read: " + line);
  }
}

void RecordedMachine::write(const std::string& path, const std::string& bytes) const {
  fs::create_directories(fs::path(root_ + path).parent_path());
  std::ofstream(root_ + path, std::ios::binary) << bytes;
}

AskQos RecordedMachine::ask_qos() const {
  return [this](const std::string& interface) -> std::optional<Qos> {
    const auto found = qos_.find(interface);
    return found == qos_.end() ? std::nullopt : std::optional(found->second);
  };
}

}  // namespace tributary::cli::doctor
