#include "verbs/queue_pair.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tributary::transport::verbs {
namespace {

std::unexpected<Error> refused(const char* what, int error) {
  return fail(Errc::exhausted, std::string(what) + ": " + std::strerror(error));
}

void put(ibv_qp_ex& pair, const ibv_send_wr& work) noexcept {
  pair.wr_id = work.wr_id;
  pair.wr_flags = work.send_flags;  // with IBV_SEND_INLINE: rdma_rxe's library looks there, others do not mind
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
    // One buffer: only messages are inline.
    return ibv_wr_set_inline_data(&pair, reinterpret_cast<void*>(work.sg_list[0].addr), work.sg_list[0].length);
  }
  ibv_wr_set_sge_list(&pair, static_cast<std::size_t>(work.num_sge), work.sg_list);
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

/// With all that is wanted, or with less: libraries without the extended calls, devices without inline data.
template <class Make>
Status QueuePair::make(const Wanted& wanted, Make make) {
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
      inline_bytes_ = std::min(asked.cap.max_inline_data, wanted.inline_bytes);
      return {};
    }
  }
  return refused("no queue pair", errno);
}

Status QueuePair::make_first(rdma_cm_id& id, const Wanted& wanted) {
  id_ = &id;
  return make(wanted, [&](ibv_qp_init_attr_ex& asked) -> ibv_qp* {
    return rdma_create_qp_ex(&id, &asked) == 0 ? id.qp : nullptr;
  });
}

Status QueuePair::make_further(const Wanted& wanted) {
  return make(wanted, [&](ibv_qp_init_attr_ex& asked) { return ibv_create_qp_ex(wanted.domain->context, &asked); });
}

Status QueuePair::prepare(rdma_cm_id& id) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  int mask = 0;
  if (rdma_init_qp_attr(&id, &attributes, &mask) != 0) return refused("no path for a further queue pair", errno);
  const int error = ibv_modify_qp(pair_, &attributes, mask);
  if (error != 0) return refused("a further queue pair does not begin", error);
  return {};
}

Status QueuePair::connect(rdma_cm_id& id, const Peer& peer) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  int mask = 0;
  if (rdma_init_qp_attr(&id, &attributes, &mask) != 0) return refused("no path for a further queue pair", errno);
  attributes.dest_qp_num = peer.number;
  attributes.rq_psn = peer.its_first_packet;
  if (const int error = ibv_modify_qp(pair_, &attributes, mask); error != 0)
    return refused("a further queue pair does not receive", error);
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  mask = 0;
  if (rdma_init_qp_attr(&id, &attributes, &mask) != 0) return refused("no path for a further queue pair", errno);
  attributes.sq_psn = peer.our_first_packet;
  attributes.retry_cnt = peer.retries;
  attributes.rnr_retry = peer.receive_retries;
  if (const int error = ibv_modify_qp(pair_, &attributes, mask); error != 0)
    return refused("a further queue pair does not send", error);
  return {};
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

/// Both kinds of calls may be used by turns; each hands over a whole list.
int QueuePair::post() noexcept {
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

/// All or nothing.
int QueuePair::post_extended() noexcept {
  ibv_wr_start(extended_);
  for (const ibv_send_wr& work : list.works()) put(*extended_, work);
  return ibv_wr_complete(extended_);
}

}  // namespace tributary::transport::verbs
