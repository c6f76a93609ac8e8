// A rank that joins one lane and contributes as fast as results come, until it is killed: PORT JOIN_FILE GROUP EPOCH.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

#include "tributary/transport/near.h"

namespace {

using namespace tributary;

class Rank final : public transport::ChannelHandler {
 public:
  Rank(transport::Transport& transport, std::uint16_t port, const std::vector<std::byte>& join, std::uint64_t group,
       std::uint32_t epoch)
      : channel_(transport.connect({"127.0.0.1", port}, *this, std::chrono::seconds(10))) {
    header_.group = group;
    header_.epoch = epoch;
    header_.flags = frame_flags::kWantsResult;
    header_.set_signature({Collective::all_reduce, DType::float32, ReduceOp::sum, 0, data_.size()});
    FrameHeader first = header_;
    first.type = FrameType::join;
    channel_->send_copy(first, join);
    header_.type = FrameType::contribution;
  }
  transport::Placement on_header(transport::Channel&, const FrameHeader& header) override {
    incoming_.resize(header.payload_bytes);
    return transport::Accept{incoming_};
  }
  void on_frame(transport::Channel&, const FrameHeader& header, std::span<std::byte> payload) override {
    if (header.type == FrameType::ready) return contribute();
    if (header.type == FrameType::result) {
      ++header_.sequence;
      ++header_.operation;
      return contribute();
    }
    std::cerr << to_string(header.type) << ": "
              << std::string_view(reinterpret_cast<const char*>(payload.data()), payload.size()) << std::endl;
  }
  void on_closed(transport::Channel&, const Error& error) override {
    std::cerr << error.message << std::endl;
    closed = true;
  }
  bool closed = false;

 private:
  void contribute() {
    if (!channel_->send(header_, std::as_bytes(std::span(data_)), 0)) closed = true;
  }
  FrameHeader header_;
  std::vector<float> data_ = std::vector<float>(256, 1.0F);
  std::vector<std::byte> incoming_;
  std::unique_ptr<transport::Channel> channel_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 64;
  std::ifstream file(argv[2], std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto bytes = std::as_bytes(std::span(text));
  transport::NearTransport transport;
  Rank rank(transport, static_cast<std::uint16_t>(std::atoi(argv[1])), {bytes.begin(), bytes.end()},
            std::strtoull(argv[3], nullptr, 10), static_cast<std::uint32_t>(std::atoi(argv[4])));
  while (!rank.closed) transport.poll(std::chrono::seconds(1));
  return 1;
}
