#pragma once
// A communicator's settings, and the report of its state.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/control/unique_id.h"
#include "client/operation/flight_record.h"
#include "client/operation/neighbours.h"
#include "client/operation/own_troubles.h"
#include "client/tuning/figures.h"
#include "client/tuning/local_ways.h"
#include "client/tuning/table.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/lane_pulse.h"
#include "tributary/transport/channel.h"
#include "tributary/transport/link_keys.h"

namespace tributary::client {

enum class PathMode : std::uint8_t { automatic, in_network, fallback };

/// The way to choose between a tree and the fallback, where both are possible. Rank 0's setting counts.
enum class TuningMode : std::uint8_t {
  off,        // use a tree whenever there is one
  automatic,  // use the cost model with its built-in figures, corrected by the times that operations take
  model,      // use the cost model with its built-in figures
  table,      // use CommunicatorSettings::tuning_table
};

struct CommunicatorSettings {
  std::uint32_t rank = 0;
  std::uint32_t nranks = 1;
  UniqueId id;
  Endpoint listen;              // address of this rank's own listeners; rank 0 uses the address of the id
  std::string advertised_host;  // the address for other ranks; empty: the address that rank 0 sees
  std::string host_id;          // this host's place in the topology
  std::uint64_t link_rate = 0;  // rate of this rank's link, in bits per second; 0: not known
  std::string rail{};           // rail of this rank's only device, as the topology names it; empty: several, or none
  std::string job = "default";
  std::string priority{};       // class of the group's trees; empty: normal
  std::string user{};           // user of this process, for the manager's listings
  std::uint32_t processes = 0;  // number of ranks that the members represent, with themselves; 0: only themselves
  std::uint32_t lanes = 1;      // 0: as many lanes as save time
  PathMode path = PathMode::automatic;
  bool require_trees = false;  // end the communicator with an error if it cannot use trees
  TuningMode tuning = TuningMode::off;
  tuning::Table tuning_table;  // the table of TuningMode::table
  bool exact = false;          // sums of floats are exact (docs/numerics.md), and the tuning knows their price
  /// If this is set, rank 0 calls it after each operation; its amendments replace the amendments from measured times.
  std::function<std::optional<tuning::Amendment>()> amendments{};
  bool local =
      false;  // ranks of one host may share memory: for all collectives, or as the lowest level of several hosts
  tuning::AttachUse attach = tuning::AttachUse::if_quick;
  std::function<void()> local_left_alone{};  // the callback `left_alone` of CallQueue
  bool manager_configured = false;
  bool late_ranks = true;                            // this rank looks for late ranks
  std::shared_ptr<transport::LinkKeys> link_keys{};  // keys of the transport, if it seals packets
  transport::Duration timeout = std::chrono::seconds(300);
  transport::Duration
      suspect_after{};        // time without a result until this rank suspects the tree; 0: timeout / 10, at most 5 s
  LanePulseSettings pulse{};  // limits for aggregators that do not answer
  transport::Duration begin_within = std::chrono::milliseconds(500);  // begins without trees after this time, unless
                                                                      // they are ready
  transport::Duration drain_grace =
      std::chrono::milliseconds(300);     // time to wait for results that are on their way when a rank is gone
  std::vector<std::uint32_t> known_as{};  // by rank: number by which people know the rank; empty: the rank
  // Called when an operation has ended, before its result is passed on, with its bytes by path. May be empty.
  std::function<void(std::uint64_t in_network, std::uint64_t between_ranks)> on_bytes{};
  std::shared_ptr<OwnTroubles> troubles{};        // finds this rank's troubles; nullptr: nobody looks for them
  std::shared_ptr<Neighbours> neighbours{};       // sees ranks of the same host; nullptr: this rank sees none
  std::shared_ptr<FlightRecord> flight_record{};  // gets this rank's operations; nullptr: no record
  std::shared_ptr<SegmentTrace> segment_trace{};  // gets the moments of this rank's segments; nullptr: no trace
};

/// A snapshot of a communicator's state, for tributary_comm_info.
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
  std::string attach_refusal;  // reason why ranks of this host do not copy from each other's memory by the kernel
  std::uint32_t lanes_shared = 0, links = 0, links_shared = 0;  // see tributary_info
  std::uint32_t hosts = 0;  // number of hosts, if each host's ranks reduce among themselves first; else 0
  std::uint64_t failovers = 0;
  std::uint64_t returns = 0;
  std::uint64_t last_pause_us = 0;
  std::uint64_t longest_pause_us = 0;
  std::uint64_t strangers_turned_away = 0;
  bool lacks_tree = false;  // no tree is in use or coming, although no setting forbids trees
  std::string reason;
  std::string transport;                     // name of the transport between hosts; the caller sets it
  std::optional<tuning::Figures> figures{};  // on rank 0: of the cost model, for the path in use
};

}  // namespace tributary::client
