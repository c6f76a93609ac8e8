#pragma once
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

namespace tributary::nccl {

/// A manager that grants every request, because without a grant no group exists. It has no trees.
class GrantingManager {
 public:
  GrantingManager() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&at), length), 0);
    EXPECT_EQ(::listen(socket_, 8), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&at), &length), 0);
    const std::string url = "http://127.0.0.1:" + std::to_string(ntohs(at.sin_port));
    ::setenv("TRIBUTARY_MANAGER", url.c_str(), 1);
    server_ = std::thread([this] { serve(); });
  }
  ~GrantingManager() {
    ::unsetenv("TRIBUTARY_MANAGER");
    ::shutdown(socket_, SHUT_RDWR);  // ends accept()
    server_.join();
    ::close(socket_);
  }
  GrantingManager(const GrantingManager&) = delete;
  GrantingManager& operator=(const GrantingManager&) = delete;

 private:
  void serve() const {
    constexpr std::string_view kAnswer =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        "Connection: close\r\nContent-Length: 2\r\n\r\n{}";
    for (int one = ::accept(socket_, nullptr, nullptr); one >= 0; one = ::accept(socket_, nullptr, nullptr)) {
      std::array<char, 4096> request{};
      (void)!::read(one, request.data(), request.size());
      (void)!::write(one, kAnswer.data(), kAnswer.size());
      ::shutdown(one, SHUT_WR);
      ::close(one);
    }
  }
  const int socket_;
  std::thread server_;
};

}  // namespace tributary::nccl
