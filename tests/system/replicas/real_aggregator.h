#pragma once
// A real aggregator that knows several managers.
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "client/cli/cluster/child_process.h"
#include "client/cli/cluster/machine.h"
#include "tests/system/manager/manager_process.h"

namespace tributary::manager {

class RealAggregator {
 public:
  /// Makes its files in `folder`. It has room for any number of groups that are never joined.
  RealAggregator(const Folder& folder, const std::string& managers, const std::string& token_file) {
    const std::string text =
        "name: real\nhost_id: h\nmanager: " + managers + "\ntoken_file: " + token_file +
        "\nstate_file: " + folder.file("real.key") +
        "\nlisten: 127.0.0.1:0\nhttp_listen: 127.0.0.1:0\nworkers: 1\nmemory: 512GiB\nready_file: " +
        folder.file("real.ready") + "\n";
    const int log = ::open(folder.file("real.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    auto process =
        cli::ChildProcess::spawn({{TRIBUTARY_AGGREGATOR_PROGRAM, "--config", folder.write("real.yaml", text)},
                                  cli::current_environment(),
                                  log,
                                  log});
    ::close(log);
    if (!process) throw std::runtime_error(process.error().message);
    process_ = std::make_unique<cli::ChildProcess>(std::move(*process));
  }

 private:
  std::unique_ptr<cli::ChildProcess> process_;
};

}  // namespace tributary::manager
