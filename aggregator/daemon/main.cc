// tributary-aggregator: reads its configuration, starts the daemon, and turns signals into calls.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "aggregator/daemon/command_line.h"
#include "aggregator/daemon/daemon.h"
#include "aggregator/daemon/files.h"
#include "aggregator/daemon/link_shares.h"
#include "aggregator/daemon/transport_checks.h"
#include "service-kit/log_formatter.h"
#include "service-kit/notify.h"
#include "service-kit/start_checks.h"

namespace tributary::aggregator {
namespace {

using service::notify_service_manager;
using std::chrono::microseconds;

constexpr microseconds kTurn = std::chrono::milliseconds(50);

void set_up_log(LogLevel level, std::string_view format) {
  auto logger = spdlog::stderr_logger_mt("tributary-aggregator");
  logger->set_formatter(
      std::make_unique<service::LogFormatter>(*service::parse_log_format(format), "tributary-aggregator"));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  spdlog::set_level(static_cast<spdlog::level::level_enum>(level));
}

/// Blocks the signals in every thread that starts from here on; the main thread takes them one by one.
sigset_t block_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return signals;
}

/// Raises the limit of descriptors: every child needs one, and the usual soft limit of 1024 is for programs that use
/// select().
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

Result<Settings> settings_of(const CommandLine& line) {
  auto settings = load_settings(line.config, line.overrides);
  if (!settings) return settings;
  resolve_host_defaults(*settings);
  return settings;
}

Status check_usable(const Settings& settings) {
  if (settings.manager.empty()) {
    return service::refuse({.key = "manager",
                            .value = "",
                            .why = "no manager is set, and without a manager no rank has a token; set it in the "
                                   "configuration, or by --manager",
                            .allowed = "http://host:port or https://host:port"});
  }
  if (auto token = read_token(settings.token_file); !token) return std::unexpected(token.error());
  if (auto tls = status_tls(settings); !tls) return std::unexpected(tls.error());
  if (auto tls = manager_client::tls_for(settings.manager, settings.tls); !tls) return std::unexpected(tls.error());
  if (auto identity = read_identity(settings.state_file); !identity) return std::unexpected(identity.error());
  return {};
}

/// Checks that no process holds the ports.
Status check_ports(const Settings& settings) {
  const auto kind = settings.transport == "udp" ? service::PortKind::datagram : service::PortKind::stream;
  if (settings.transport == "tcp" || settings.transport == "udp") {
    for (const Endpoint& listen : settings.listen) {
      if (auto ok = service::check_port("listen", listen, kind); !ok) return ok;
    }
  }
  return service::check_port("http_listen", settings.http_listen);
}

/// Reports the reasons for which a start would fail now, and changes nothing. Errc::io: the configuration is right, but
/// another process, such as a running aggregator, holds a port.
Status check_start(const Settings& settings) {
  if (auto ok = check_transport_settings(settings); !ok) return ok;
  if (auto ok = check_transport_module(settings); !ok) return ok;
  if (settings.transport != "dpdk") {  // the kernel does not have DPDK's addresses
    for (const Endpoint& listen : settings.listen) {
      if (auto ok = service::check_listen("listen", listen); !ok) return ok;
    }
  }
  if (auto ok = check_link_shares(settings); !ok) return ok;
  if (auto ok = service::check_listen("http_listen", settings.http_listen); !ok) return ok;
  if (auto ok = service::check_writable_file("ready_file", settings.ready_file); !ok) return ok;
  // Leave out the state file: if it cannot be written, a start only warns. Check the ports last, as only they depend on
  // other processes.
  return check_ports(settings);
}

Exit complain(const Error& error) {
  std::cerr << "tributary-aggregator: " << error.message << "\n";
  return error.code == Errc::bad_config ? Exit::configuration : Exit::failed;
}

void reload(const CommandLine& line, Daemon& daemon) {
  daemon.reload_tls();
  const auto settings = load_settings(line.config, line.overrides);
  if (!settings)
    return spdlog::error("SIGHUP: the configuration is wrong, and nothing was changed: {}", settings.error().message);
  spdlog::set_level(static_cast<spdlog::level::level_enum>(settings->log_level));
  spdlog::info("SIGHUP: log_level is {}", to_string(settings->log_level));
}

int wait_for_signal(const sigset_t& signals, microseconds limit) {
  const timespec time{.tv_sec = limit.count() / 1'000'000, .tv_nsec = (limit.count() % 1'000'000) * 1000};
  return ::sigtimedwait(&signals, nullptr, &time);
}

void end_at_once() {
  spdlog::warn("a second signal: the process ends at once");
  spdlog::shutdown();
  std::_Exit(static_cast<int>(Exit::failed));
}

/// Tells the service manager, as often as it demands, that no thread hangs.
class Watchdog {
 public:
  void turn(const Daemon& daemon) {
    if (!period_) return;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + *period_ / 3;
    const auto stuck = daemon.stuck();
    if (stuck.empty()) return notify_service_manager("WATCHDOG=1");
    for (const std::string& thread : stuck) spdlog::error("{} hangs: the watchdog will end this process", thread);
  }

 private:
  std::optional<microseconds> period_ = service::watchdog_period();
  std::chrono::steady_clock::time_point next_{};
};

/// Logs the sealed connections that ended because of changed records.
void log_changed_records(Daemon& daemon) {
  const auto news = daemon.take_changed_records();
  for (const std::string& sentence : news.sentences) spdlog::error("{}", sentence);
  if (news.more != 0) spdlog::error("{} more sealed connections ended because of changed records", news.more);
}

Exit serve(Daemon& daemon, const CommandLine& line, const sigset_t& signals) {
  Watchdog watchdog;
  bool ending = false;
  while (!daemon.shut_down()) {
    watchdog.turn(daemon);
    log_changed_records(daemon);
    const int signal = wait_for_signal(signals, kTurn);
    if (signal == SIGHUP) reload(line, daemon);
    if (signal != SIGTERM && signal != SIGINT) continue;
    if (std::exchange(ending, true)) end_at_once();
    spdlog::info("{}: draining; a second signal ends the process at once", signal == SIGTERM ? "SIGTERM" : "SIGINT");
    notify_service_manager("STOPPING=1\nSTATUS=draining");
    daemon.begin_shutdown("it shuts down");
  }
  return Exit::good;
}

std::string text_of(const std::vector<ListenPlace>& places) {
  std::string text;
  for (const ListenPlace& place : places) text += (text.empty() ? "" : ", ") + to_string(place.at);
  return text;
}

Exit run(const CommandLine& line, const Settings& settings) {
  set_up_log(settings.log_level, settings.log_format);
  const sigset_t signals = block_signals();
  raise_descriptor_limit();
  auto daemon = Daemon::start(settings);
  if (!daemon) return complain(daemon.error());
  if (!settings.ready_file.empty()) {
    if (auto ok = write_file(settings.ready_file, (*daemon)->ready_json(), 0644); !ok) {
      return complain(
          {Errc::bad_config, "the ready file " + settings.ready_file + " cannot be written: " + ok.error().message});
    }
  }
  spdlog::info("tributary-aggregator {} {} takes children on {}, HTTP on {}, with {} workers", TRIBUTARY_VERSION,
               settings.name, text_of((*daemon)->data_places()), to_string((*daemon)->http_endpoint()),
               settings.workers);
  notify_service_manager("READY=1\nSTATUS=serving");
  const Exit exit = serve(**daemon, line, signals);
  daemon->reset();
  spdlog::info("ended");
  return exit;
}

Exit main_of(int argc, const char* const* argv) {
  const auto asked = read_command_line(argc, argv);
  if (const Exit* exit = std::get_if<Exit>(&asked)) return *exit;
  const auto& line = std::get<CommandLine>(asked);
  const auto settings = settings_of(line);
  if (!settings) return complain(settings.error());
  if (line.print_config) {
    std::cout << print_settings(*settings);
    if (!line.check) return Exit::good;
  }
  if (auto ok = check_usable(*settings); !ok) return complain(ok.error());
  if (line.check) {
    if (auto ok = check_start(*settings); !ok) return complain(ok.error());
    std::cerr << "tributary-aggregator: the configuration is good\n";
    return Exit::good;
  }
  return run(line, *settings);
}

}  // namespace
}  // namespace tributary::aggregator

int main(int argc, char** argv) {
  try {
    return static_cast<int>(tributary::aggregator::main_of(argc, argv));
  } catch (const std::exception& error) {  // the system has no thread or memory left
    std::cerr << "tributary-aggregator: cannot start: " << error.what() << "\n";
    return static_cast<int>(tributary::aggregator::Exit::failed);
  }
}
