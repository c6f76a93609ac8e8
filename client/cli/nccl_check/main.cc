// tributary-nccl-check: uses libnccl-net-tributary.so as NCCL does, with host memory and without a GPU.
//
// Under a launcher that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT (tributary run, torchrun), the program is
// one rank; else it starts --ranks processes of itself on this machine.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "client/cli/free_port/free_port.h"
#include "client/cli/nccl_check/collectives.h"
#include "client/cli/nccl_check/messages.h"
#include "client/cli/nccl_check/traffic.h"
#include "client/cli/nccl_check/values.h"
#include "service-kit/one_setting.h"
#include "service-kit/program_options.h"

namespace tributary::cli::nccl_check {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitNoTree = 69;  // sysexits.h: EX_UNAVAILABLE
constexpr std::chrono::seconds kMeetingLimit{60};

int number_from(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return otherwise;
  const std::string_view all(text);
  int number = 0;
  const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), number);
  require(error == std::errc{} && end == all.data() + all.size(), std::string(name) + " is '" + text + "', no number");
  return number;
}

/// Starts `ranks` processes of this program, waits for all, and returns the exit code of the first that failed.
int run_ranks(int ranks, char** argv) {
  const auto port = free_port();
  require(port.has_value(), port ? "" : port.error().message);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", std::to_string(*port).c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(ranks).c_str(), 1);
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    setenv("RANK", std::to_string(rank).c_str(), 1);
    pid_t child = -1;
    require(posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, argv, environ) == 0, "a rank cannot be started");
    children.push_back(child);
  }
  int code = 0;
  for (std::size_t ended = 0; ended < children.size(); ++ended) {
    int status = 0;
    waitpid(children[ended], &status, 0);
    const int own = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code == 0) code = own;
  }
  return code;
}

void check(Session& session) {
  const auto begin = std::chrono::steady_clock::now();
  const bool on = session.collnet_is_on() &&
                  (session.options().measure ? measure_collectives(session) : check_collectives(session));
  if (!on) {
    const auto spent = std::chrono::steady_clock::now() - begin;
    say(session.rank(), "CollNet is off, which took " +
                            std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(spent).count()) +
                            " ms to find out: NCCL would use its own rings and trees over this plugin's messages");
    if (session.options().require_in_network)
      throw NoTree("--require in-network: CollNet is off; NCCL_DEBUG=WARN or INFO says why");
    require(session.options().expect_off,
            "CollNet is off; NCCL_DEBUG=WARN or INFO says why (with --without-collnet this is no failure)");
  }
  require(!on || !session.options().expect_off, "CollNet is on, although --without-collnet was given");
  session.options().measure ? measure_messages(session) : check_messages(session);
}

/// Throws NoTree on every rank, if no byte of some rank went by a tree.
void require_tree(const Traffic::Bytes& bytes, Bootstrap& bootstrap) {
  const auto everybody = bootstrap.all_gather_value(bytes);
  if (std::ranges::all_of(everybody, [](const Traffic::Bytes& one) { return one.in_network > 0; })) return;
  if (std::ranges::all_of(everybody, [](const Traffic::Bytes& one) { return one.in_shared_memory > 0; }))
    throw NoTree(
        "--require in-network: no byte went by a tree: all ranks are on one host, and sum in its memory; "
        "TRIBUTARY_LOCAL=off sends the data of every rank to the aggregators");
  throw NoTree(
      "--require in-network: no byte went by a tree; NCCL_DEBUG=WARN says why the group has none, and "
      "TRIBUTARY_LOG=info whether the tuning chose the ranks");
}

int run_rank(const Options& options, int rank, int ranks) {
  const char* host = std::getenv("MASTER_ADDR");
  try {
    require(ranks <= kRanksMax || options.measure,
            "allowed are at most " + std::to_string(kRanksMax) + " ranks: sums of 8-bit floats must stay exact");
    Bootstrap bootstrap(rank, ranks, host == nullptr ? "127.0.0.1" : host,
                        static_cast<std::uint16_t>(number_from("MASTER_PORT", 29400)), kMeetingLimit);
    const Traffic traffic;
    {
      Session session(options, bootstrap);
      check(session);
    }
    const Traffic::Bytes bytes = traffic.read();
    if (!options.expect_off) say(rank, to_string(bytes));
    if (options.require_in_network) require_tree(bytes, bootstrap);
    bootstrap.barrier();
    say(rank, "good");
    return 0;
  } catch (const std::exception& e) {
    say(rank, std::string("FAILED: ") + e.what());
    const bool no_tree = dynamic_cast<const NoTree*>(&e) != nullptr;
    std::_Exit(no_tree ? kExitNoTree : kExitFailed);  // the other ranks notice the end at once
  }
}

void describe(CLI::App& app, Options& options, std::string& required, int& ranks) {
  service::use_help_style(app);
  app.footer("Exit codes: 0 good, 1 failed, 64 wrong usage, 69 no byte went by the tree that --require demands.");
  service::add_text(app, "--plugin", options.plugin,
                    {.value = "PLUGIN",
                     .help = "The plugin, as NCCL_NET_PLUGIN: a path, or X for libnccl-net-X.so",
                     .standard = options.plugin});
  const auto number = [&](const char* name, int& into, int low, int high, const char* help) {
    service::add_number(app, name, into, low, high, {.value = "N", .help = help, .standard = std::to_string(into)});
  };
  number("--newest", options.newest, kOldestVersion, kNewestVersion,
         "Ignore tables newer than this version, as an older NCCL does");
  number("--ranks", ranks, 1, 64, "Number of processes on this machine, if no launcher has set RANK");
  number("--communicators", options.communicators, 1, 64, "Number of communicators");
  number("--channels", options.channels, 1, 64, "Number of NCCL channels: how often memory is registered");
  number("--depth", options.depth, 1, 64, "Collectives in flight of each communicator");
  number("--connections", options.connections, 1, 1024, "Number of connections to each peer");
  number("--rounds", options.rounds, 0, 1'000'000, "Number of further rounds of allreduces");
  number("--message-rounds", options.message_rounds, 1, 1'000'000,
         "Number of rounds of messages of all sizes on each connection");
  service::add_number(app, "--seconds", options.seconds, 0, 1e6,
                      {.value = "SECONDS", .help = "Time of further allreduces", .standard = "0"});
  app.add_flag("--measure", options.measure, "Measure bandwidth and latency instead of checking");
  app.add_flag("--without-collnet", options.expect_off,
               "Expect no service: CollNet must be off, and messages must work");
  service::add_parsed(app, "--require", required,
                      {.value = "WORD",
                       .help = "in-network: fail unless bytes went by a tree",
                       .allowed = "in-network",
                       .standard = "TRIBUTARY_REQUIRE"},
                      [](const std::string& text) -> tributary::Result<std::string> {
                        if (text == "in-network") return text;
                        return tributary::fail(tributary::Errc::bad_argument, "it is not in-network");
                      });
}

int run(int argc, char** argv) {
  CLI::App app("Drives the NCCL plugin as NCCL does, on host memory: no GPU and no NCCL is needed",
               "tributary-nccl-check");
  Options options;
  std::string required;
  int ranks = 2;
  describe(app, options, required, ranks);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return service::answer(error, app, "tributary-nccl-check", argc, argv);
  }
  options.require_in_network =
      !required.empty() || service::one_setting("TRIBUTARY_REQUIRE", "TRIBUTARY_CONFIG", "require") == "in-network";
  if (options.require_in_network) setenv("TRIBUTARY_REQUIRE", "in-network", 1);
  const int rank = number_from("RANK", -1);
  return rank < 0 ? run_ranks(ranks, argv) : run_rank(options, rank, number_from("WORLD_SIZE", 1));
}

}  // namespace
}  // namespace tributary::cli::nccl_check

int main(int argc, char** argv) {
  return tributary::cli::nccl_check::run(argc, argv);
}
