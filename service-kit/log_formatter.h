#pragma once
// The form of log lines, the same in the daemons and in the library, so that one pattern finds all of them:
//
//   2026-11-23T08:40:11.123+00:00 info node-1[4242] tributary-manager: serving on 10.0.0.1:7470
//   {"time":"2026-11-23T08:40:11.123+00:00","level":"info","component":"tributary-manager","host":"node-1","pid":4242,
//    "message":"serving on 10.0.0.1:7470"}
//
// The second form is one line, too. A stranger's text may be part of a message, so neither form holds control characters
// of the message: each line of a log is one record. All code is in this header: the daemons link spdlog; the library
// compiles it in.
#include <spdlog/formatter.h>
#include <spdlog/pattern_formatter.h>
#include <unistd.h>

#include <array>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "service-kit/log_format.h"

namespace tributary::service {

class LogFormatter final : public spdlog::formatter {
 public:
  LogFormatter(LogFormat format, std::string component, std::string host = host_name())
      : format_(format), component_(std::move(component)), host_(std::move(host)) {}

  void format(const spdlog::details::log_msg& line, spdlog::memory_buf_t& out) override {
    std::string_view message(line.payload.data(), line.payload.size());
    // Remove the name at the beginning of the library's own texts.
    if (message.starts_with(component_) && message.substr(component_.size()).starts_with(": "))
      message.remove_prefix(component_.size() + 2);
    if (format_ == LogFormat::json) add(out, R"({"time":")");
    time_.format(line, out);
    const std::string_view level = kLevels.at(static_cast<std::size_t>(line.level));
    const std::string pid = std::to_string(::getpid());  // in a forked child, the child's number
    if (format_ == LogFormat::text) {
      for (const std::string_view part :
           std::initializer_list<std::string_view>{" ", level, " ", host_, "[", pid, "] ", component_, ": "})
        add(out, part);
      add_printable(out, message);
      out.push_back('\n');
      return;
    }
    add(out, R"(","level":")");
    add(out, level);
    add(out, R"(","component":")");
    add_escaped(out, component_);
    add(out, R"(","host":")");
    add_escaped(out, host_);
    add(out, R"(","pid":)");
    add(out, pid);
    add(out, R"(,"message":")");
    add_escaped(out, message);
    add(out, "\"}\n");
  }
  [[nodiscard]] std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<LogFormatter>(format_, component_, host_);
  }

  [[nodiscard]] static std::string host_name() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
    return name.data();
  }

 private:
  static constexpr std::array<std::string_view, 7> kLevels{"trace", "debug", "info", "warn", "error", "error", "off"};

  static void add(spdlog::memory_buf_t& out, std::string_view text) {
    out.append(text.data(), text.data() + text.size());
  }
  static void add_digits(spdlog::memory_buf_t& out, unsigned char byte) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    out.push_back(kDigits[byte >> 4U]);
    out.push_back(kDigits[byte & 15U]);
  }
  /// Writes control characters, such as the end of a line or a terminal's commands, as \x and two digits.
  static void add_printable(spdlog::memory_buf_t& out, std::string_view text) {
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x20 && byte != 0x7f) {
        out.push_back(c);
      } else {
        add(out, "\\x");
        add_digits(out, byte);
      }
    }
  }
  /// Escapes the bytes that JSON forbids within quotation marks. Other bytes, even if they are no UTF-8, stay as they
  /// are.
  static void add_escaped(spdlog::memory_buf_t& out, std::string_view text) {
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        out.push_back('\\');
        out.push_back(c);
      } else if (byte < 0x20) {
        add(out, "\\u00");
        add_digits(out, byte);
      } else {
        out.push_back(c);
      }
    }
  }

  const LogFormat format_;
  const std::string component_;
  const std::string host_;
  spdlog::pattern_formatter time_{"%Y-%m-%dT%H:%M:%S.%e%z", spdlog::pattern_time_type::local, ""};
};

}  // namespace tributary::service
