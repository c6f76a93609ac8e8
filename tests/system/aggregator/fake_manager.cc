#include "tests/system/aggregator/fake_manager.h"

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <nlohmann/json.hpp>
#include <thread>

namespace tributary::aggregator::test {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using nlohmann::json;
using Tcp = asio::ip::tcp;

struct FakeManager::Known {
  std::uint64_t incarnation = 0;
  json registration;
  json load;
  json down;
};

/// Serves one request after another on one thread.
struct FakeManager::Server {
  Server(FakeManager& manager, std::uint16_t port) : owner(manager), acceptor(io) {
    // Use a port below the range from which the system gives ports to connecting sockets. Otherwise, while no process
    // listens on the port, a socket that connects to it could itself get this port, and keep it.
    error_code error = listen_at(port != 0 ? port : static_cast<std::uint16_t>(20'000 + ::getpid() % 10'000));
    for (std::uint16_t next = 20'000; port == 0 && error && next < 32'000; ++next) error = listen_at(next);
    if (error) throw boost::system::system_error(error);
    accept();
    thread = std::jthread([this] { io.run(); });
  }
  ~Server() {
    io.stop();
    thread.join();
  }
  error_code listen_at(std::uint16_t port) {
    error_code error;
    acceptor = Tcp::acceptor(io);
    (void)acceptor.open(Tcp::v4(), error);
    ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);  // aggregators that the test starts must not keep it open
    (void)acceptor.set_option(asio::socket_base::reuse_address(true), error);
    (void)acceptor.bind({asio::ip::address_v4::loopback(), port}, error);
    if (!error) (void)acceptor.listen(asio::socket_base::max_listen_connections, error);
    return error;
  }
  void accept() {
    acceptor.async_accept([this](error_code error, Tcp::socket socket) {
      if (!error) serve(std::move(socket));
      accept();
    });
  }
  void serve(Tcp::socket socket) {
    ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
    beast::tcp_stream stream(std::move(socket));
    beast::flat_buffer buffer;
    http::request<http::string_body> request;
    error_code error;
    http::read(stream, buffer, request, error);
    if (error) return;
    const auto text = [](auto view) { return std::string(view.data(), view.size()); };
    const Reply made = owner.answer(text(request.method_string()), text(request.target()),
                                    text(request[http::field::authorization]), request.body());
    http::response<http::string_body> response(static_cast<http::status>(made.status), 11);
    response.set(http::field::content_type, "application/json");
    response.body() = made.body;
    response.keep_alive(false);
    response.prepare_payload();
    http::write(stream, response, error);
  }

  FakeManager& owner;
  asio::io_context io;
  Tcp::acceptor acceptor;
  std::jthread thread;
};

FakeManager::FakeManager()
    : key_(std::make_unique<SigningKey>(*SigningKey::generate())),
      exchange_(std::make_unique<ExchangeKey>(*ExchangeKey::generate())) {
  start();
}
FakeManager::~FakeManager() {
  stop();
}

std::string FakeManager::url() const {
  return "http://127.0.0.1:" + std::to_string(port_);
}

void FakeManager::start() {
  server_ = std::make_unique<Server>(*this, port_);
  port_ = server_->acceptor.local_endpoint().port();
}
void FakeManager::stop() {
  server_.reset();
}

void FakeManager::replace() {
  const std::lock_guard lock(mutex_);
  key_ = std::make_unique<SigningKey>(*SigningKey::generate());
  exchange_ = std::make_unique<ExchangeKey>(*ExchangeKey::generate());
  known_.clear();
}
void FakeManager::set_draining(bool draining) {
  const std::lock_guard lock(mutex_);
  draining_ = draining;
}
void FakeManager::set_lease_seconds(std::uint32_t seconds) {
  const std::lock_guard lock(mutex_);
  lease_seconds_ = seconds;
}
void FakeManager::forget_registrations() {
  const std::lock_guard lock(mutex_);
  known_.clear();
}
void FakeManager::want_token(const std::string& token) {
  const std::lock_guard lock(mutex_);
  token_ = token;
}

json FakeManager::registration_of(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto it = known_.find(name);
  return it == known_.end() ? json() : it->second.registration;
}
json FakeManager::last_load_of(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto it = known_.find(name);
  return it == known_.end() ? json() : it->second.load;
}
json FakeManager::last_down_of(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto it = known_.find(name);
  return it == known_.end() ? json() : it->second.down;
}
std::uint64_t FakeManager::registrations() const {
  const std::lock_guard lock(mutex_);
  return registrations_;
}
std::uint64_t FakeManager::renewals() const {
  const std::lock_guard lock(mutex_);
  return renewals_;
}
std::vector<std::string> FakeManager::unregistered() const {
  const std::lock_guard lock(mutex_);
  return unregistered_;
}

FakeManager::Reply FakeManager::answer(const std::string& method, const std::string& path, const std::string& token,
                                       const std::string& body) {
  static const std::string kFolder = "/v1/aggregators";
  const std::lock_guard lock(mutex_);
  if (!token_.empty() && token != "Bearer " + token_)
    return {401, R"({"error":{"message":"this token is not the one"}})"};
  if (method == "POST" && path == kFolder) return register_aggregator(body);
  if (!path.starts_with(kFolder + "/")) return {404, "{}"};
  const std::string name = path.substr(kFolder.size() + 1, path.find('/', kFolder.size() + 1) - kFolder.size() - 1);
  if (method == "PUT" && path.ends_with("/lease")) return renew(name, body);
  if (method != "DELETE" || known_.erase(name) == 0) return {404, "{}"};
  unregistered_.push_back(name);
  return {204, ""};
}

FakeManager::Reply FakeManager::register_aggregator(const std::string& body) {
  const json registration = json::parse(body);
  const std::string name = registration.at("name");
  known_[name] = {.incarnation = ++registrations_, .registration = registration, .load = json(), .down = json()};
  return {200, json{{"name", name},
                    {"incarnation", registrations_},
                    {"lease_seconds", lease_seconds_},
                    {"public_key", to_base64(key_->public_key())},
                    {"exchange_key", to_base64(exchange_->public_key())}}
                   .dump()};
}

FakeManager::Reply FakeManager::renew(const std::string& name, const std::string& body) {
  const json renewal = json::parse(body);
  const auto it = known_.find(name);
  if (it == known_.end() || renewal.at("incarnation") != it->second.incarnation) return {404, "{}"};
  ++renewals_;
  it->second.load = renewal.at("load");
  it->second.down = renewal.value("data_down", json());
  return {200, json{{"state", draining_ ? "draining" : "active"}}.dump()};
}

}  // namespace tributary::aggregator::test
