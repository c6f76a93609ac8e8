// A flood of joins with valid tokens, as fast as the aggregator takes them, until the process is killed: PORT JOINS.
// JOINS is a file with one join a line, in hexadecimal; the flood uses them in turn.
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tributary/transport/near.h"

namespace {

using namespace tributary;
using Join = std::vector<std::byte>;

constexpr std::size_t kConnections = 64;  // below unjoined_max: the flood is not one of strangers

class Visitor final : public transport::ChannelHandler {
 public:
  Visitor(transport::Transport& transport, std::uint16_t port, const Join& join)
      : channel_(transport.connect({"127.0.0.1", port}, *this, std::chrono::seconds(10))) {
    FrameHeader header;
    header.type = FrameType::join;
    channel_->send_copy(header, join);
  }
  transport::Placement on_header(transport::Channel&, const FrameHeader& header) override {
    incoming_.resize(header.payload_bytes);
    return transport::Accept{incoming_};
  }
  void on_frame(transport::Channel&, const FrameHeader&, std::span<std::byte>) override { answered = true; }
  void on_closed(transport::Channel&, const Error&) override { answered = true; }
  bool answered = false;

 private:
  std::vector<std::byte> incoming_;
  std::unique_ptr<transport::Channel> channel_;
};

std::vector<Join> joins_in(const char* path) {
  std::vector<Join> joins;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    Join& join = joins.emplace_back();
    for (std::size_t at = 0; at + 2 <= line.size(); at += 2) {
      unsigned byte = 0;
      std::from_chars(line.data() + at, line.data() + at + 2, byte, 16);
      join.push_back(static_cast<std::byte>(byte));
    }
  }
  return joins;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  const auto port = static_cast<std::uint16_t>(std::atoi(argv[1]));
  const std::vector<Join> joins = joins_in(argv[2]);
  if (joins.empty()) return 64;
  transport::NearTransport transport;
  std::array<std::unique_ptr<Visitor>, kConnections> visitors;
  // A join that is not refused gets no answer, because its lane never forms: each turn also gives up one of them.
  for (std::size_t turn = 0, next = 0;; ++turn) {
    for (std::size_t i = 0; i < visitors.size(); ++i) {
      if (visitors[i] && !visitors[i]->answered && i != turn % visitors.size()) continue;
      visitors[i] = std::make_unique<Visitor>(transport, port, joins[next++ % joins.size()]);
    }
    transport.poll(std::chrono::milliseconds(1));
  }
}
