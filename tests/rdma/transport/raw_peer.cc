#include "tests/rdma/transport/raw_peer.h"

#include <arpa/inet.h>
#include <fcntl.h>

#include <chrono>
#include <cstring>
#include <utility>

#include "transport/verbs/proof.h"
#include "tributary/transport/channel.h"

namespace tributary::transport::test {
namespace {

using namespace verbs;  // NOLINT(google-build-using-namespace): all that it uses is from there

constexpr auto kLimit = std::chrono::seconds(60);

sockaddr_in address_of(const std::string& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

}  // namespace

RawPeer::RawPeer(const Endpoint& to, const std::string& from, std::uint64_t group, std::function<void()> pump,
                 std::uint32_t receives, const std::optional<LinkKeys::Link>& seal)
    : pump_(std::move(pump)),
      scratch_(kScratchBytes),
      ring_(kDepth * kMessageBytes),
      out_(kMessageBytes),
      sealed_connection_(seal.has_value()) {
  events_.reset(rdma_create_event_channel());
  ::fcntl(events_->fd, F_SETFL, ::fcntl(events_->fd, F_GETFL) | O_NONBLOCK);
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(events_.get(), &id, nullptr, RDMA_PS_TCP) != 0) return;
  id_.reset(id);
  sockaddr_in source = address_of(from, 0);
  sockaddr_in target = address_of(to.host, to.port);
  if (rdma_resolve_addr(id, reinterpret_cast<sockaddr*>(&source), reinterpret_cast<sockaddr*>(&target), 5000) != 0)
    return;
  if (!wait_event(RDMA_CM_EVENT_ADDR_RESOLVED) || rdma_resolve_route(id, 5000) != 0) return;
  if (!wait_event(RDMA_CM_EVENT_ROUTE_RESOLVED) || !set_up_queue_pair(receives)) return;
  Greeting greeting{.group = group, .message_eighths = message_bytes_for(4096) / 8, .receive_depth = kDepth};
  if (seal) {
    const LinkName& name = seal->link.name;
    greeting.set_security(seal->link.security);
    greeting.epoch = name.epoch;
    greeting.lane = static_cast<std::uint8_t>(name.lane);
    greeting.child = name.child;
    greeting.proof = proof_of_request(seal->secret, greeting, *rdma_get_local_addr(id));
  }
  rdma_conn_param wanted{};
  wanted.private_data = &greeting;
  wanted.private_data_len = sizeof greeting;
  wanted.responder_resources = wanted.initiator_depth = 4;
  wanted.retry_count = wanted.rnr_retry_count = 7;
  connected_ = rdma_connect(id, &wanted) == 0 && wait_event(RDMA_CM_EVENT_ESTABLISHED);
}

RawPeer::~RawPeer() {
  if (!id_) return;
  if (id_->qp != nullptr) {
    rdma_disconnect(id_.get());
    rdma_destroy_qp(id_.get());
  }
}

bool RawPeer::wait_event(rdma_cm_event_type wanted) {
  const auto limit = Clock::now() + kLimit;
  while (Clock::now() < limit) {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(events_.get(), &event) != 0) {
      pump_();
      continue;
    }
    const auto type = event->event;
    rdma_ack_cm_event(event);
    return type == wanted;
  }
  return false;
}

bool RawPeer::set_up_queue_pair(std::uint32_t receives) {
  domain_.reset(ibv_alloc_pd(id_->verbs));
  queue_.reset(ibv_create_cq(id_->verbs, 256, nullptr, nullptr, 0));
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = queue_.get();
  wanted.qp_type = IBV_QPT_RC;
  wanted.sq_sig_all = 1;
  wanted.cap = {.max_send_wr = 64, .max_recv_wr = kDepth, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  if (rdma_create_qp(id_.get(), domain_.get(), &wanted) != 0) return false;
  const auto region = [&](std::vector<std::byte>& memory) {
    return MemoryRegionPtr(ibv_reg_mr(domain_.get(), memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE));
  };
  scratch_region_ = region(scratch_);
  ring_region_ = region(ring_);
  out_region_ = region(out_);
  for (std::uint32_t i = 0; i < receives; ++i) post_receive(i);
  return true;
}

void RawPeer::post_receive(std::uint32_t index) {
  ibv_sge place{.addr = reinterpret_cast<std::uintptr_t>(ring_.data() + index * kMessageBytes),
                .length = static_cast<std::uint32_t>(kMessageBytes),
                .lkey = ring_region_->lkey};
  ibv_recv_wr work{.wr_id = index, .next = nullptr, .sg_list = &place, .num_sge = 1};
  ibv_recv_wr* refused = nullptr;
  ibv_post_recv(id_->qp, &work, &refused);
}

template <class T>
std::optional<T> RawPeer::take_first(std::vector<T>& from) {
  wait_until([&] { return !from.empty(); });
  if (from.empty()) return std::nullopt;
  T first = std::move(from.front());
  from.erase(from.begin());
  return first;
}

MessagePrefix RawPeer::next_prefix(std::size_t record_bytes, std::uint32_t fetched) noexcept {
  return {.consumed = consumed_,
          .fetched = fetched,
          .bytes = static_cast<std::uint32_t>(sizeof(MessagePrefix) + record_bytes),
          .number = messages_++};
}

void RawPeer::send_message(std::span<const std::byte> records, std::uint32_t fetched) {
  const MessagePrefix prefix = next_prefix(records.size(), fetched);
  std::vector<std::byte> message(sizeof prefix + records.size());
  std::memcpy(message.data(), &prefix, sizeof prefix);
  if (!records.empty()) std::memcpy(message.data() + sizeof prefix, records.data(), records.size());
  send_bytes(message);
}

std::vector<std::byte> RawPeer::message_with(RecordKind kind, const FrameHeader& header,
                                             std::span<const std::byte> body) {
  verbs::RecordHead head{.kind = kind, .payload_bytes = static_cast<std::uint32_t>(body.size()), .header = {}};
  encode(header, head.header);
  const MessagePrefix prefix = next_prefix(sizeof head + aligned(body.size()), 0);
  std::vector<std::byte> message(prefix.bytes + kMessageTagBytes);
  std::memcpy(message.data(), &prefix, sizeof prefix);
  std::memcpy(message.data() + sizeof prefix, &head, sizeof head);
  if (!body.empty()) std::memcpy(message.data() + sizeof prefix + sizeof head, body.data(), body.size());
  return message;
}

bool RawPeer::greet(std::unique_ptr<SealedMessages> seal) {
  seal_ = std::move(seal);
  ++messages_;
  send_bytes(seal_->ours());
  const auto answer = take_first(sealed_);
  return answer && seal_->greet(*answer).has_value();
}

void RawPeer::send_bytes(std::span<const std::byte> message) {
  std::memcpy(out_.data(), message.data(), message.size());
  ibv_sge place{.addr = reinterpret_cast<std::uintptr_t>(out_.data()),
                .length = static_cast<std::uint32_t>(message.size()),
                .lkey = out_region_->lkey};
  ibv_send_wr work{};
  work.wr_id = next_number_++;
  work.sg_list = &place;
  work.num_sge = 1;
  work.opcode = IBV_WR_SEND;
  ibv_send_wr* refused = nullptr;
  if (ibv_post_send(id_->qp, &work, &refused) == 0) static_cast<void>(wait_for(work.wr_id));
}

void RawPeer::send_frame(const FrameHeader& header, std::span<const std::byte> payload, std::uint32_t fetched) {
  std::vector<std::byte> record(sizeof(verbs::RecordHead) + aligned(payload.size()));
  FrameHeader counted = header;
  counted.payload_bytes = static_cast<std::uint32_t>(payload.size());
  verbs::RecordHead head{.kind = RecordKind::here, .payload_bytes = counted.payload_bytes, .header = {}};
  encode(counted, head.header);
  std::memcpy(record.data(), &head, sizeof head);
  if (!payload.empty()) std::memcpy(record.data() + sizeof head, payload.data(), payload.size());
  send_message(record, fetched);
}

void RawPeer::acknowledge(std::uint32_t fetched) {
  send_message({}, fetched);
}

void RawPeer::wait_until(const std::function<bool()>& done) {
  const auto limit = Clock::now() + kLimit;
  while (!done() && Clock::now() < limit) {
    ibv_wc completion;
    if (ibv_poll_cq(queue_.get(), 1, &completion) == 1) {
      take(completion);
    } else {
      pump_();
    }
  }
}

std::optional<RawPeer::Offer> RawPeer::next_offer() {
  return take_first(offers_);
}
std::optional<RawPeer::Told> RawPeer::next_told() {
  return take_first(told_);
}

void RawPeer::take(const ibv_wc& completion) {
  if (completion.wr_id >= kDepth || completion.status != IBV_WC_SUCCESS) return;
  const auto index = static_cast<std::uint32_t>(completion.wr_id);
  const std::byte* const message = ring_.data() + index * kMessageBytes;
  if (sealed_connection_) sealed_.emplace_back(message, message + completion.byte_len);
  std::size_t at = sealed_connection_ ? completion.byte_len : sizeof(MessagePrefix);
  while (at + sizeof(verbs::RecordHead) <= completion.byte_len) {
    verbs::RecordHead head;
    std::memcpy(&head, message + at, sizeof head);
    const bool here = head.kind == RecordKind::here;
    if (!here) {
      Told told{.kind = head.kind, .header = decode(head.header).value_or(FrameHeader{}), .bytes = head.payload_bytes};
      std::memcpy(&told.where, message + at + sizeof head, sizeof told.where);
      if (head.kind == RecordKind::fetch) {
        offers_.push_back({.header = told.header, .where = told.where, .bytes = told.bytes});
      } else {
        told_.push_back(told);
      }
    }
    at += sizeof head + aligned(here ? head.payload_bytes : sizeof(RemotePayload));
  }
  post_receive(index);
  ++consumed_;
}

std::optional<ibv_wc> RawPeer::wait_for(std::uint64_t number) {
  const auto limit = Clock::now() + kLimit;
  while (Clock::now() < limit) {
    ibv_wc completion;
    if (ibv_poll_cq(queue_.get(), 1, &completion) != 1) {
      pump_();
      continue;
    }
    if (completion.wr_id == number) return completion;
    take(completion);
  }
  return std::nullopt;
}

std::uint32_t RawPeer::make_cell(const FrameHeader& header, std::span<const std::byte> payload) {
  FrameHeader counted = header;
  counted.payload_bytes = static_cast<std::uint32_t>(payload.size());
  verbs::RecordHead head{.kind = RecordKind::landed, .payload_bytes = counted.payload_bytes, .header = {}};
  encode(counted, head.header);
  const MessagePrefix prefix{.consumed = consumed_, .bytes = sizeof prefix + sizeof head};
  std::memcpy(scratch_.data(), &prefix, sizeof prefix);
  std::memcpy(scratch_.data() + sizeof prefix, &head, sizeof head);
  std::memcpy(scratch_.data() + prefix.bytes, payload.data(), payload.size());
  return prefix.bytes;
}

ibv_wc_status RawPeer::one_sided(ibv_wr_opcode opcode, std::uint64_t address, std::uint32_t key, std::size_t bytes,
                                 std::uint32_t immediate) {
  ibv_sge place{.addr = reinterpret_cast<std::uintptr_t>(scratch_.data()),
                .length = static_cast<std::uint32_t>(bytes),
                .lkey = scratch_region_->lkey};
  ibv_send_wr work{};
  work.wr_id = next_number_++;
  work.sg_list = &place;
  work.num_sge = 1;
  work.opcode = opcode;
  work.imm_data = htonl(immediate);
  work.wr.rdma = {.remote_addr = address, .rkey = key};
  ibv_send_wr* refused = nullptr;
  if (ibv_post_send(id_->qp, &work, &refused) != 0) return IBV_WC_GENERAL_ERR;
  const auto completion = wait_for(work.wr_id);
  return completion ? completion->status : IBV_WC_GENERAL_ERR;
}

ibv_wc_status RawPeer::read(std::uint64_t address, std::uint32_t key, std::size_t bytes) {
  return one_sided(IBV_WR_RDMA_READ, address, key, bytes);
}
ibv_wc_status RawPeer::write(std::uint64_t address, std::uint32_t key, std::size_t bytes) {
  return one_sided(IBV_WR_RDMA_WRITE, address, key, bytes);
}

ibv_wc_status RawPeer::write_and_tell(std::uint64_t address, std::uint32_t key, std::size_t bytes, CellImmediate said) {
  said.number = messages_++;
  return one_sided(IBV_WR_RDMA_WRITE_WITH_IMM, address, key, bytes, packed(said));
}
ibv_wc_status RawPeer::write_and_tell(std::uint64_t address, std::uint32_t key, std::size_t bytes,
                                      PlaceImmediate said) {
  said.number = messages_++;
  return one_sided(IBV_WR_RDMA_WRITE_WITH_IMM, address, key, bytes, packed(said));
}

}  // namespace tributary::transport::test
