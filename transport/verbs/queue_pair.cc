#include "transport/verbs/queue_pair.h"

#include <endian.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::transport::verbs {
namespace {

std::unexpected<Error> refused(const char* what, int error) {
  return fail(Errc::exhausted, std::string(what) + ": " + std::strerror(error));
}

std::string hexadecimal(std::uint16_t value) {
  std::array<char, 4> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

void put(ibv_qp_ex& pair, const ibv_send_wr& work) noexcept {
  TRIBUTARY_ASSERT((work.send_flags & IBV_SEND_INLINE) == 0 || work.num_sge == 1, "{} buffers are sent inline",
                   work.num_sge);
  pair.wr_id = work.wr_id;
  pair.wr_flags = work.send_flags;  // with IBV_SEND_INLINE, which rdma_rxe's library expects
                                    // here
  switch (work.opcode) {
    case IBV_WR_SEND:
      ibv_wr_send(&pair);
      break;
    case IBV_WR_RDMA_WRITE:
      ibv_wr_rdma_write(&pair, work.wr.rdma.rkey, work.wr.rdma.remote_addr);
      break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      ibv_wr_rdma_write_imm(&pair, work.wr.rdma.rkey, work.wr.rdma.remote_addr, work.imm_data);
      break;
    case IBV_WR_RDMA_READ:
      ibv_wr_rdma_read(&pair, work.wr.rdma.rkey, work.wr.rdma.remote_addr);
      break;
    case IBV_WR_BIND_MW:
      return ibv_wr_bind_mw(&pair, work.bind_mw.mw, work.bind_mw.rkey, &work.bind_mw.bind_info);
    default:
      return ibv_wr_local_inv(&pair, work.invalidate_rkey);
  }
  if ((work.send_flags & IBV_SEND_INLINE) != 0) {
    // Only messages are inline, and a message has one buffer.
    return ibv_wr_set_inline_data(&pair, reinterpret_cast<void*>(work.sg_list[0].addr), work.sg_list[0].length);
  }
  ibv_wr_set_sge_list(&pair, static_cast<std::size_t>(work.num_sge), work.sg_list);
}

/// Finds the partition's index in the port's table. Full and limited members are in the same partition.
Result<std::uint16_t> index_of_partition(ibv_context& context, std::uint8_t port, std::uint16_t key) {
  constexpr std::uint16_t kPartition = 0x7FFF;
  std::string others;
  ibv_port_attr attributes{};
  const int count = ibv_query_port(&context, port, &attributes) == 0 ? attributes.pkey_tbl_len : 0;
  for (int index = 0; index < count; ++index) {
    __be16 found = 0;
    if (ibv_query_pkey(&context, port, index, &found) != 0 || found == 0) continue;
    if ((be16toh(found) & kPartition) == (key & kPartition)) return static_cast<std::uint16_t>(index);
    others += (others.empty() ? "" : ", ") + hexadecimal(be16toh(found));
  }
  return fail(Errc::bad_config, "port " + std::to_string(port) + " of RDMA device " +
                                    ibv_get_device_name(context.device) + " is not in partition " + hexadecimal(key) +
                                    " (rdma_partition_key), but in: " + (others.empty() ? "none" : others));
}

ibv_mtu code_of_mtu(std::uint32_t bytes) noexcept {
  return static_cast<ibv_mtu>(IBV_MTU_256 + std::bit_width(bytes / 256) - 1);
}

}  // namespace

QueuePair::QueuePair(QueuePair&& other) noexcept
    : index(other.index),
      posted(other.posted),
      retired(other.retired),
      since_signal(other.since_signal),
      tells_end(other.tells_end),
      to_receive(std::move(other.to_receive)),
      id_(std::exchange(other.id_, nullptr)),
      pair_(std::exchange(other.pair_, nullptr)),
      extended_(std::exchange(other.extended_, nullptr)),
      extended_gathers_(other.extended_gathers_),
      reads_asked_(other.reads_asked_),
      reads_answered_(other.reads_answered_),
      sends_max_(other.sends_max_),
      inline_bytes_(other.inline_bytes_) {}

ibv_qp_init_attr_ex QueuePair::attributes(const Wanted& wanted) noexcept {
  ibv_qp_init_attr_ex attributes{};
  attributes.send_cq = attributes.recv_cq = wanted.completions;
  attributes.cap = {.max_send_wr = wanted.sends,
                    .max_recv_wr = wanted.receives,
                    .max_send_sge = SendList::kGathered,
                    .max_recv_sge = 1,
                    .max_inline_data = wanted.inline_bytes};
  attributes.qp_type = IBV_QPT_RC;
  attributes.comp_mask = IBV_QP_INIT_ATTR_PD;
  attributes.pd = wanted.domain;
  return attributes;
}

/// Makes a queue pair with all wanted features, or with fewer, because some libraries have no extended calls and some
/// devices have no inline data.
template <class Make>
Status QueuePair::make_by(const Wanted& wanted, Make make) {
  TRIBUTARY_ASSERT(pair_ == nullptr, "queue pair {} is made twice", index);
  for (const bool extended : {true, false}) {
    if (extended && !wanted.extended) continue;
    for (const std::uint32_t inline_bytes : {wanted.inline_bytes, 0U}) {
      ibv_qp_init_attr_ex asked = attributes(wanted);
      asked.cap.max_inline_data = inline_bytes;
      if (extended) {
        asked.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        asked.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                               IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
      }
      pair_ = make(asked);
      if (pair_ == nullptr) continue;
      extended_ = extended ? ibv_qp_to_qp_ex(pair_) : nullptr;
      extended_gathers_ = wanted.extended_gathers;
      reads_asked_ = wanted.reads_asked;
      sends_max_ = wanted.sends;
      reads_answered_ = wanted.reads_answered;
      inline_bytes_ = std::min(asked.cap.max_inline_data, wanted.inline_bytes);
      return {};
    }
  }
  return refused("no queue pair", errno);
}

Status QueuePair::make_of_manager(rdma_cm_id& id, const Wanted& wanted) {
  id_ = &id;
  return make_by(wanted, [&](ibv_qp_init_attr_ex& asked) -> ibv_qp* {
    return rdma_create_qp_ex(&id, &asked) == 0 ? id.qp : nullptr;
  });
}

Status QueuePair::make(const Wanted& wanted) {
  return make_by(wanted, [&](ibv_qp_init_attr_ex& asked) { return ibv_create_qp_ex(wanted.domain->context, &asked); });
}

/// Moves the queue pair to its next state, with the attributes that the connection manager knows.
Status QueuePair::step_to(ibv_qp_state state, rdma_cm_id& id, const Change& change) {
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  int mask = 0;
  if (rdma_init_qp_attr(&id, &attributes, &mask) != 0) return refused("no path for a queue pair", errno);
  if (auto ok = change(attributes); !ok) return ok;
  if (const int error = ibv_modify_qp(pair_, &attributes, mask); error != 0)
    return refused("a queue pair does not begin", error);
  return {};
}

Status QueuePair::prepare(rdma_cm_id& id, const RdmaPath& path) {
  TRIBUTARY_ASSERT(pair_ != nullptr && id_ == nullptr, "only the connection manager prepares queue pair {}", index);
  return step_to(IBV_QPS_INIT, id, [&](ibv_qp_attr& attributes) -> Status {
    if (!path.partition_key) return {};
    const auto place = index_of_partition(*id.verbs, attributes.port_num, *path.partition_key);
    if (!place) return std::unexpected(place.error());
    attributes.pkey_index = *place;
    return {};
  });
}

Status QueuePair::connect(rdma_cm_id& id, const RdmaPath& path, const Peer* peer) {
  // Sets the attributes again, because the rights of the peer are known now.
  if (auto ok = prepare(id, path); !ok) return ok;
  auto ok = step_to(IBV_QPS_RTR, id, [&](ibv_qp_attr& attributes) -> Status {
    attributes.max_dest_rd_atomic = std::min(attributes.max_dest_rd_atomic, reads_answered_);
    if (path.mtu != 0) attributes.path_mtu = std::min(attributes.path_mtu, code_of_mtu(path.mtu));
    if (path.service_level) attributes.ah_attr.sl = *path.service_level;
    if (path.rnr_timer) attributes.min_rnr_timer = *path.rnr_timer;
    if (peer == nullptr) return {};
    attributes.dest_qp_num = peer->number;
    attributes.rq_psn = peer->its_first_packet;
    return {};
  });
  if (!ok) return ok;
  return step_to(IBV_QPS_RTS, id, [&](ibv_qp_attr& attributes) -> Status {
    attributes.max_rd_atomic = std::min(attributes.max_rd_atomic, reads_asked_);
    if (path.ack_timeout) attributes.timeout = *path.ack_timeout;
    attributes.retry_cnt = std::min<std::uint8_t>(path.retry_count, 7);
    attributes.rnr_retry = std::min<std::uint8_t>(path.rnr_retry_count, 7);
    if (peer != nullptr) attributes.sq_psn = peer->our_first_packet;
    return {};
  });
}

void QueuePair::stop() noexcept {
  if (pair_ == nullptr || id_ != nullptr) return;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(pair_, &attributes, IBV_QP_STATE);
}

void QueuePair::destroy() noexcept {
  if (pair_ == nullptr) return;
  if (id_ != nullptr) {
    rdma_destroy_qp(id_);
  } else {
    ibv_destroy_qp(pair_);
  }
  pair_ = nullptr;
  extended_ = nullptr;
}

/// The two kinds of calls may alternate; each call posts a whole list.
int QueuePair::post() noexcept {
  TRIBUTARY_ASSERT(pair_ != nullptr && !list.empty(), "queue pair {} has nothing to post", index);
  TRIBUTARY_ASSERT(posted - retired <= sends_max_,
                   "{} requests are outstanding on queue pair {}, which has room for {}", posted - retired, index,
                   sends_max_);
  int error = 0;
  if (extended_ != nullptr && (extended_gathers_ || !list.gathers())) {
    error = post_extended();
  } else {
    ibv_send_wr* ignored = nullptr;
    error = ibv_post_send(pair_, list.chained(), &ignored);
  }
  list.clear();
  return error;
}

/// Posts all requests of the list or none.
int QueuePair::post_extended() noexcept {
  ibv_wr_start(extended_);
  for (const ibv_send_wr& work : list.works()) put(*extended_, work);
  return ibv_wr_complete(extended_);
}

}  // namespace tributary::transport::verbs
