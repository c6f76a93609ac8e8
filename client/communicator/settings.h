#pragma once
// A communicator's settings, and its report on itself.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/control/unique_id.h"
#include "client/tuning/table.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/lane_pulse.h"
#include "tributary/transport/channel.h"
#include "tributary/transport/link_keys.h"

namespace tributary::client {

enum class PathMode : std::uint8_t { automatic, in_network, fallback };

/// The choice between a tree and the ranks by themselves, where both are possible. Rank 0's setting counts.
enum class TuningMode : std::uint8_t {
  off,        // a tree whenever there is one
  automatic,  // the cost model with its built-in figures, corrected by the times that operations take
  model,      // the cost model with its built-in figures
  table,      // CommunicatorSettings::tuning_table
};

struct CommunicatorSettings {
  std::uint32_t rank = 0;
  std::uint32_t nranks = 1;
  UniqueId id;
  Endpoint listen;              // where this rank's own listeners are; rank 0: ignored, the id's
  std::string advertised_host;  // the address that other ranks are told; empty: what rank 0 sees
  std::string host_id;          // this host's place in the topology
  std::uint64_t link_rate = 0;  // rate of this rank's link, in bits per second; 0: not known
  std::string job = "default";
  std::string user{};           // user of this process, for the manager's listings
  std::uint32_t processes = 0;  // ranks for which the members speak, themselves included; 0: for themselves alone
  std::uint32_t lanes = 1;      // 0: as many as save time
  PathMode path = PathMode::automatic;
  bool require_trees = false;  // have no communicator rather than one that falls back
  TuningMode tuning = TuningMode::off;
  tuning::Table tuning_table;  // for TuningMode::table
  /// If this is set, rank 0 calls it after each operation for an amendment, in place of amendments from measured times.
  std::function<std::optional<tuning::Amendment>()> amendments{};
  bool local =
      false;  // ranks of one host may share memory: for all collectives, or as the lowest level of several hosts
  bool attach = true;  // ranks of one host copy from each other's memory by the kernel, where it allows that
  std::function<void()> local_left_alone{};  // CallQueue's
  bool manager_configured = false;
  std::shared_ptr<transport::LinkKeys> link_keys{};  // the transport's, where it seals packets
  transport::Duration timeout = std::chrono::seconds(300);
  transport::Duration
      suspect_after{};        // suspects the tree after this long without a result; 0: timeout / 10, at most 5 s
  LanePulseSettings pulse{};  // when to give up an aggregator that does not answer
  transport::Duration begin_within = std::chrono::milliseconds(500);  // begins without trees after this time, unless
                                                                      // they are ready
  transport::Duration drain_grace =
      std::chrono::milliseconds(300);     // waits for results that are on their way when a rank is gone
  std::vector<std::uint32_t> known_as{};  // by rank: the number by which people know it; empty: the rank
};

/// A snapshot for tributary_comm_info.
struct CommunicatorInfo {
  bool in_network = false;
  bool local = false;
  std::uint32_t epoch = 0;
  std::uint32_t lanes = 0;
  std::uint32_t levels = 0;
  std::uint32_t window = 0;
  std::uint32_t segment_bytes = 0;
  std::uint64_t operations = 0;
  std::uint64_t bytes_in_network = 0;
  std::uint64_t bytes_fallback = 0;
  std::uint64_t bytes_local = 0;
  std::uint64_t direct = 0;    // collectives, or pieces of them, that needed no copy in shared memory
  std::string attach_refusal;  // why ranks of this host do not copy from each other's memory by the kernel
  std::uint32_t lanes_shared = 0, links = 0, links_shared = 0;  // see tributary_info
  std::uint32_t hosts = 0;  // hosts whose ranks reduce among themselves first; 0: none
  std::uint64_t failovers = 0;
  std::uint64_t returns = 0;
  std::uint64_t last_pause_us = 0;
  std::uint64_t longest_pause_us = 0;
  std::uint64_t strangers_turned_away = 0;
  bool lacks_tree = false;  // no tree is in use, although nobody asked for that and none is about to be
  std::string reason;
  std::string transport;  // between hosts; the caller sets it
};

}  // namespace tributary::client
