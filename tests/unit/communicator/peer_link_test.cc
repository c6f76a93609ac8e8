// A rank that receives the form of an exact sum from another rank, which may lie.
#include "client/collectives/fallback/peer_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tributary/kernels/partial_sum.h"
#include "tributary/protocol/numerics.h"
#include "tributary/transport/sim_network.h"

namespace tributary::client {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr Signature kCall{Collective::all_reduce, DType::float32, kExactSumOfHosts, 0, 3};

std::vector<std::byte> form_of(const std::vector<float>& values) {
  const std::vector<kernels::PartialInput> input{{std::as_bytes(std::span(values)), false}};
  std::vector<std::byte> form(form_bytes_max(DType::float32, values.size()));
  form.resize(kernels::add_partial_sums(DType::float32, input, values.size(), form));
  return form;
}

class FormFromAPeer : public testing::Test,
                      public PeerLinkUser,
                      public transport::Acceptor,
                      public transport::ChannelHandler {
 protected:
  FormFromAPeer() {
    listener_ = std::move(*network_.transport("here").listen({"here", 1}, *this));
    liar_ = network_.transport("there").connect({"here", 1}, *this, std::chrono::seconds(1));
    link_.post({.signature = kCall,
                .bytes = static_cast<std::uint32_t>(form_bytes_max(DType::float32, 3)),
                .form_elements = 3});
  }
  void send(const std::vector<std::byte>& payload) {
    FrameHeader header;
    header.type = FrameType::peer_data;
    header.set_signature(kCall);
    liar_->send_copy(header, payload);
    network_.run_for(std::chrono::seconds(1));
  }

  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override {
    link_.adopt(std::move(channel));
    return &link_;
  }
  transport::Placement on_header(transport::Channel&, const FrameHeader&) override { return transport::Accept{}; }
  void on_frame(transport::Channel&, const FrameHeader&, std::span<std::byte>) override {}
  void on_closed(transport::Channel&, const Error&) override {}
  void peer_received(std::uint32_t, PeerClass, const PostedReceive&, std::span<std::byte> payload) override {
    received_.assign(payload.begin(), payload.end());
  }
  void peer_sent(std::uint32_t, PeerClass, std::uint64_t) override {}
  void peer_failed(std::uint32_t, PeerClass, const std::string& reason) override { failed_ = reason; }
  void peer_mismatch(std::uint32_t, PeerClass, const PostedReceive&, const FrameHeader&) override { mismatch_ = true; }

  transport::SimNetwork network_;
  PeerLink link_{*this, 1, PeerClass::collective};
  std::unique_ptr<transport::Listener> listener_;
  std::unique_ptr<transport::Channel> liar_;
  std::vector<std::byte> received_;
  std::string failed_;
  bool mismatch_ = false;
};

TEST_F(FormFromAPeer, IsTakenAlthoughItIsShorterThanItsRoom) {
  const auto form = form_of({1, 2, 3});
  send(form);
  EXPECT_EQ(received_, form);
  EXPECT_THAT(failed_, IsEmpty());
}

TEST_F(FormFromAPeer, OfAnotherNumberOfElementsEndsTheConnection) {
  send(form_of({1, 2}));
  EXPECT_THAT(received_, IsEmpty());
  EXPECT_THAT(failed_, HasSubstr("a sum that is no form"));
}

TEST_F(FormFromAPeer, IsNotAnyBytes) {
  send(std::vector<std::byte>(12, std::byte{1}));
  EXPECT_THAT(received_, IsEmpty());
  EXPECT_THAT(failed_, HasSubstr("a sum that is no form"));
}

TEST_F(FormFromAPeer, IsNeverLongerThanItsRoom) {
  send(std::vector<std::byte>(form_bytes_max(DType::float32, 3) + 1, std::byte{1}));
  EXPECT_TRUE(mismatch_);
  EXPECT_THAT(received_, IsEmpty());
}

}  // namespace
}  // namespace tributary::client
