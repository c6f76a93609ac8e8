#include "tests/fuzz/client/liar.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace tributary::fuzz {

using nlohmann::json;
using transport::Channel;
using transport::ChannelHandler;

namespace {

/// Returns the frame only if a reader of headers accepts it.
std::optional<Frame> right(Frame frame) {
  const std::uint32_t most = payload_bytes_max(frame.header.type);
  if (frame.payload.size() > most) frame.payload.resize(most);
  frame.header.payload_bytes = static_cast<std::uint32_t>(frame.payload.size());
  FrameBytes bytes{};
  encode(frame.header, bytes);
  const auto header = decode(bytes);
  if (!header) return std::nullopt;
  frame.header = *header;
  return frame;
}

class LyingChannel final : public Channel, public ChannelHandler {
 public:
  explicit LyingChannel(Liar& liar) : liar_(liar) {}
  void set_inner(std::unique_ptr<Channel> inner) { inner_ = std::move(inner); }
  void set_handler(ChannelHandler* handler) { handler_ = handler; }

  bool send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie) override {
    auto instead = liar_.instead_of(header, payload, true);
    if (!instead) return inner_->send(header, payload, cookie);
    for (std::size_t i = 0; i + 1 < instead->size(); ++i)
      inner_->send_copy((*instead)[i].header, (*instead)[i].payload);
    const Frame& last = kept_.emplace_back(std::move(instead->back()));
    return inner_->send(last.header, last.payload, cookie);
  }
  void send_copy(const FrameHeader& header, std::span<const std::byte> payload) override {
    const auto instead = liar_.instead_of(header, payload, false);
    if (!instead) return inner_->send_copy(header, payload);
    for (const Frame& frame : *instead) inner_->send_copy(frame.header, frame.payload);
  }
  void give_back(std::span<const std::byte> payload) override { inner_->give_back(payload); }
  void resume() override { inner_->resume(); }
  void close() override { inner_->close(); }
  void close_after_flush(transport::Duration limit) override { inner_->close_after_flush(limit); }
  bool closed() const noexcept override { return inner_->closed(); }
  std::string peer() const override { return inner_->peer(); }

  void on_open(Channel&) override { handler_->on_open(*this); }
  transport::Placement on_header(Channel&, const FrameHeader& header) override {
    return handler_->on_header(*this, header);
  }
  bool takes_in_place(Channel&, const FrameHeader& header) override { return handler_->takes_in_place(*this, header); }
  void on_frame(Channel&, const FrameHeader& header, std::span<std::byte> payload) override {
    handler_->on_frame(*this, header, payload);
  }
  void on_sent(Channel&, std::uint64_t cookie) override { handler_->on_sent(*this, cookie); }
  void on_closed(Channel&, const Error& error) override { handler_->on_closed(*this, error); }

 private:
  Liar& liar_;
  ChannelHandler* handler_ = nullptr;
  std::deque<Frame> kept_;          // frames that the inner channel may read until it is destroyed
  std::unique_ptr<Channel> inner_;  // destroyed first
};

class LyingAcceptor final : public transport::Acceptor {
 public:
  LyingAcceptor(Liar& liar, transport::Acceptor& acceptor) : liar_(liar), acceptor_(acceptor) {}
  ChannelHandler* on_accept(std::unique_ptr<Channel> inner) override {
    auto channel = std::make_unique<LyingChannel>(liar_);
    LyingChannel* const wrapped = channel.get();
    wrapped->set_inner(std::move(inner));
    ChannelHandler* const handler = acceptor_.on_accept(std::move(channel));
    if (handler == nullptr) return nullptr;
    wrapped->set_handler(handler);
    return wrapped;
  }

 private:
  Liar& liar_;
  transport::Acceptor& acceptor_;
};

class LyingListener final : public transport::Listener {
 public:
  LyingListener(Liar& liar, transport::Acceptor& acceptor) : acceptor_(liar, acceptor) {}
  Endpoint local() const override { return inner_->local(); }
  LyingAcceptor& acceptor() { return acceptor_; }
  void set_inner(std::unique_ptr<transport::Listener> inner) { inner_ = std::move(inner); }

 private:
  LyingAcceptor acceptor_;
  std::unique_ptr<transport::Listener> inner_;  // destroyed first
};

}  // namespace

std::optional<std::vector<Frame>> Liar::instead_of(const FrameHeader& header, std::span<const std::byte> payload,
                                                   bool needed) {
  if (!about_(header.type) || script_.over()) return std::nullopt;
  const Frame truth{header, {payload.begin(), payload.end()}};
  said_[count_++ % said_.size()] = truth;
  std::vector<Frame> said;
  const auto say = [&said](Frame frame) {
    if (auto lawful = right(std::move(frame))) said.push_back(std::move(*lawful));
  };
  switch (script_.byte() % 16) {
    case 8:
      break;
    case 9:
      say(truth);
      say(truth);
      break;
    case 10:
    case 11:
      say(changed_header(truth));
      break;
    case 12:
      say(changed_payload(truth));
      break;
    case 13:
      say(changed_value(truth));
      break;
    case 14:
      say(changed_value(old()));
      say(truth);
      break;
    case 15:
      say(made_up());
      say(truth);
      break;
    default:
      return std::nullopt;
  }
  if (needed && said.empty()) return std::nullopt;
  return said;
}

Frame Liar::changed_header(Frame frame) {
  FrameBytes bytes{};
  encode(frame.header, bytes);
  const std::uint8_t how = script_.byte();
  const std::size_t at = script_.byte() % bytes.size();
  const std::size_t width = std::min<std::size_t>(std::size_t{1} << how % 4, bytes.size() - at);
  std::uint64_t value = 0;
  std::memcpy(&value, &bytes[at], width);
  const std::uint8_t by = script_.byte();
  value = (how & 4U) != 0   ? value + static_cast<std::uint64_t>(static_cast<std::int8_t>(by))
          : (how & 8U) != 0 ? ~std::uint64_t{by}
                            : by;
  std::memcpy(&bytes[at], &value, width);
  if (const auto header = decode(bytes)) frame.header = *header;
  if ((how & 16U) != 0) frame.payload.resize(script_.number(2));
  return frame;
}

Frame Liar::changed_payload(Frame frame) {
  const std::size_t at = script_.number(2) % (frame.payload.size() + 1);
  const std::size_t out = std::min<std::size_t>(script_.byte() % 32, frame.payload.size() - at);
  const auto in = script_.take(script_.byte() % 32);
  const auto place = frame.payload.begin() + static_cast<std::ptrdiff_t>(at);
  frame.payload.insert(frame.payload.erase(place, place + static_cast<std::ptrdiff_t>(out)), in.begin(), in.end());
  return frame;
}

Frame Liar::changed_value(Frame frame) {
  const auto text = [&] {
    return std::string(reinterpret_cast<const char*>(frame.payload.data()), frame.payload.size());
  };
  json body = json::parse(text(), nullptr, false);
  if (body.is_discarded() || body.is_null()) return changed_payload(std::move(frame));
  // Count values inside other values, too.
  std::vector<json*> values{&body};
  for (std::size_t i = 0; i < values.size() && values.size() < 256; ++i) {
    if (!values[i]->is_structured()) continue;
    for (json& one : *values[i]) values.push_back(&one);
  }
  json& value = *values[script_.byte() % values.size()];
  switch (script_.byte() % 16) {
    case 0:
      value = nullptr;
      break;
    case 1:
      value = -1;
      break;
    case 2:
      value = 1e300;
      break;
    case 3:
      value = UINT64_MAX;
      break;
    case 4:
      value = json::array();
      break;
    case 5:
      value = json::object();
      break;
    case 6:
      value = std::string();
      break;
    case 7:
      value = script_.byte() % 2 == 0;
      break;
    case 8:
      value = 0.5;
      break;
    case 9: {
      const auto taken = script_.take(script_.byte() % 32);
      value = std::string(reinterpret_cast<const char*>(taken.data()), taken.size());
      break;
    }
    case 10:
      if (value.is_array() && !value.empty()) value.push_back(json(value.front()));
      break;
    case 11:
      if (value.is_structured() && !value.empty()) value.erase(value.begin());
      break;
    case 12:
      value = json(*values[script_.byte() % values.size()]);
      break;
    default:
      value = value.is_number_unsigned() ? json(value.get<std::uint64_t>() + script_.byte() - 8) : json(script_.byte());
  }
  const std::string changed = body.dump(-1, ' ', false, json::error_handler_t::replace);
  frame.payload.assign(std::as_bytes(std::span(changed)).begin(), std::as_bytes(std::span(changed)).end());
  return frame;
}

Frame Liar::made_up() {
  Frame frame = old();
  frame.header.type = static_cast<FrameType>(script_.byte() % 64);
  const std::uint8_t which = script_.byte();
  if ((which & 1U) != 0) frame.header.epoch = script_.byte();
  if ((which & 2U) != 0) frame.header.operation = (which & 4U) != 0 ? UINT64_MAX : script_.byte();
  if ((which & 8U) != 0) frame.header.count = script_.byte();
  if ((which & 16U) != 0) {
    const auto body = script_.take(script_.byte());
    frame.payload.assign(body.begin(), body.end());
  } else if ((which & 32U) != 0) {
    frame.payload.clear();
  }
  return frame;
}

Result<std::unique_ptr<transport::Listener>> LyingTransport::listen(const Endpoint& at, transport::Acceptor& acceptor) {
  auto listener = std::make_unique<LyingListener>(liar_, acceptor);
  auto inner = inner_.listen(at, listener->acceptor());
  if (!inner) return std::unexpected(inner.error());
  listener->set_inner(std::move(*inner));
  return listener;
}

std::unique_ptr<Channel> LyingTransport::connect(const Endpoint& to, ChannelHandler& handler,
                                                 transport::Duration limit) {
  auto channel = std::make_unique<LyingChannel>(liar_);
  channel->set_handler(&handler);
  channel->set_inner(inner_.connect(to, *channel, limit));
  return channel;
}

}  // namespace tributary::fuzz
