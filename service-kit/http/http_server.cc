#include "service-kit/http/http_server.h"

#include <pthread.h>

#include <spdlog/spdlog.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <thread>
#include <vector>

#include "service-kit/http/http_session.h"

namespace tributary::service {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds kAcceptBackOff{100};
constexpr std::chrono::milliseconds kFilesPeriod{1000};

Result<tcp::endpoint> resolve(asio::io_context& io, const Endpoint& listen) {
  error_code error;
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(listen.host, std::to_string(listen.port), tcp::resolver::passive, error);
  if (error || found.empty()) {
    return fail(Errc::io,
                "cannot listen on " + to_string(listen) + ": its address is not known here (" + error.message() + ")");
  }
  return found.begin()->endpoint();
}

void refresh(TlsContext& tls, bool in_any_case) {
  const auto changed = tls.refresh(in_any_case);
  if (!changed) {
    spdlog::error("the files of TLS were not reloaded, and the old ones stay in use: {}", changed.error().message);
  } else if (*changed) {
    spdlog::info("the files of TLS were reloaded; the certificate expires on {}", utc_text(tls.expires_at()));
  }
}

}  // namespace

struct HttpServer::Impl {
  Impl(const HttpServerSettings& with, HttpHandler& to)
      : settings(with),
        handler(to),
        door(with.connections_max, with.stranger_bytes_max, with.handshakes_per_second_max),
        io(static_cast<int>(with.threads)),
        acceptor(asio::make_strand(io)),
        back_off(io) {}

  Status listen() {
    const auto endpoint = resolve(io, settings.listen);
    if (!endpoint) return std::unexpected(endpoint.error());
    error_code error;
    acceptor.open(endpoint->protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error && endpoint->protocol() == tcp::v6()) acceptor.set_option(asio::ip::v6_only(false), error);
    if (!error) acceptor.bind(*endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (!error) return {};
    const std::string advice = error == asio::error::address_in_use
                                   ? "; another process has it: stop that one, or set another 'listen' address"
                                   : "";
    return fail(Errc::io, "cannot listen on " + to_string(settings.listen) + ": " + error.message() + advice);
  }

  void accept() {
    acceptor.async_accept(asio::make_strand(io), [this](error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) {  // probably no descriptors are left: wait until other connections close some
        spdlog::warn("a connection could not be accepted: {}", error.message());
        door.make_room();
        back_off.expires_after(kAcceptBackOff);
        back_off.async_wait(asio::bind_executor(acceptor.get_executor(), [this](error_code stopped) {
          if (!stopped) accept();
        }));
        return;
      }
      std::make_shared<HttpSession>(std::move(socket), settings, handler, door)->start();
      accept();
    });
  }

  struct Repeated {
    Repeated(asio::io_context& io, std::chrono::milliseconds every, std::function<void()> what)
        : timer(io), period(every), call(std::move(what)) {}
    void arm() {
      timer.expires_after(period);
      timer.async_wait([this](error_code stopped) {
        if (stopped) return;
        call();
        arm();
      });
    }
    asio::steady_timer timer;
    std::chrono::milliseconds period;
    std::function<void()> call;
  };

  HttpServerSettings settings;
  HttpHandler& handler;
  HttpDoor door;  // declared before io: io's handlers own sessions, which call the door at their end
  asio::io_context io;
  tcp::acceptor acceptor;
  asio::steady_timer back_off;
  std::vector<std::unique_ptr<Repeated>> repeated;
  std::vector<std::thread> threads;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() {
  stop(std::chrono::milliseconds(0));
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerSettings& settings, HttpHandler& handler) {
  auto impl = std::make_unique<Impl>(settings, handler);
  if (auto ok = impl->listen(); !ok) return std::unexpected(ok.error());
  asio::post(impl->acceptor.get_executor(), [raw = impl.get()] { raw->accept(); });
  for (std::uint32_t i = 0; i < settings.threads; ++i) {
    impl->threads.emplace_back([raw = impl.get()] {
      ::pthread_setname_np(::pthread_self(), raw->settings.thread_name.c_str());
      auto work = asio::make_work_guard(raw->io);
      raw->io.run();
    });
  }
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(impl)));
  if (settings.tls) server->every(kFilesPeriod, [tls = settings.tls] { refresh(*tls, false); });
  return server;
}

Endpoint HttpServer::local() const {
  error_code error;
  const auto endpoint = impl_->acceptor.local_endpoint(error);
  return {endpoint.address().to_string(), endpoint.port()};
}

const HttpDoor& HttpServer::door() const noexcept {
  return impl_->door;
}

void HttpServer::every(std::chrono::milliseconds period, std::function<void()> call) {
  asio::post(impl_->acceptor.get_executor(), [raw = impl_.get(), period, call = std::move(call)]() mutable {
    raw->repeated.push_back(std::make_unique<Impl::Repeated>(raw->io, period, std::move(call)));
    raw->repeated.back()->arm();
  });
}

void HttpServer::reload_tls() {
  if (impl_->settings.tls) refresh(*impl_->settings.tls, true);
}

void HttpServer::stop(std::chrono::milliseconds limit) {
  if (impl_->threads.empty()) return;
  asio::post(impl_->acceptor.get_executor(), [raw = impl_.get()] {
    error_code ignored;
    raw->acceptor.close(ignored);
    raw->back_off.cancel();
  });
  impl_->door.close_all();
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (impl_->door.count() != 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  impl_->io.stop();
  for (std::thread& thread : impl_->threads) thread.join();
  impl_->threads.clear();
}

}  // namespace tributary::service
