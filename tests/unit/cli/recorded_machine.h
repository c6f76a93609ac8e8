#pragma once
// A machine's files in /sys, /proc and /etc, unpacked from one text file of machines/.
//
//   # a comment
//   /path = text             a file; \n ends a line of it, \0 is a zero byte
//   /path -> /target         a link; makes the target a folder if it is not there
//   /path @ 100:0d00 106:04  a file of 4096 bytes: zeros, except for these bytes at these offsets; all in hexadecimal
//   qos eth0 08 26:3         netlink's answer about an interface: priorities with PFC, DSCPs with their priorities
#include <map>
#include <string>

#include "client/cli/doctor/qos.h"
#include "tributary/transport/system_tree.h"

namespace tributary::cli::doctor {

class RecordedMachine {
 public:
  /// Throws if a line cannot be read.
  explicit RecordedMachine(const std::string& name);
  RecordedMachine(const RecordedMachine&) = delete;
  RecordedMachine& operator=(const RecordedMachine&) = delete;
  ~RecordedMachine();

  [[nodiscard]] transport::SystemTree system() const { return transport::SystemTree(root_); }
  [[nodiscard]] AskQos ask_qos() const;

 private:
  void unpack(const std::string& line);
  void write(const std::string& path, const std::string& bytes) const;

  std::string root_;
  std::map<std::string, Qos> qos_;
};

}  // namespace tributary::cli::doctor
