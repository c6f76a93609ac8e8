#pragma once
// A small client of the manager's REST interface, for other processes: the aggregator daemon, ranks, the command line.
// It blocks, throws nothing, logs nothing, and keeps all HTTP types out of its callers.
#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tributary/protocol/credential.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"
#include "tributary/protocol/token_page.h"

namespace tributary::manager_client {

struct ManagerSettings {
  // "http://host:7470"; the port may be left out, an IPv6 address is written in brackets. Several managers of one
  // cluster are separated by commas.
  std::string url;
  std::string token;                               // the job token or the aggregator token; may be empty for reads
  std::chrono::milliseconds connect_limit{2000};   // name look-up and connecting, over all addresses of the name
  std::chrono::milliseconds request_limit{10000};  // the whole request, connecting included
  std::uint64_t answer_bytes_max = 256U << 20;
};

struct AggregatorRegistration {
  std::string name;  // at most 63 bytes; empty: the manager makes one from host and port
  std::string host;  // its place in the topology; at most 63 bytes
  Endpoint data;     // where ranks connect; a wildcard host (0.0.0.0, ::) means "the address this request came from"
  Endpoint http;     // metrics and health; same rule
  std::uint64_t memory_bytes = 0;               // that lanes may use
  std::uint32_t children_max = kChildrenMax;    // per lane, 1 to kChildrenMax
  std::uint64_t line_rate_bits_per_second = 0;  // rate of its network interface; 0: the topology's, or the assumed one
  std::string version;
  ExchangePublicKey exchange_key{};  // the keys that seal packets to it follow from this key
  // Further addresses like `data`, one for each further device: lane i uses the (i mod n)th of all n, at most 16.
  // An older manager, which knows of one address only, refuses them.
  std::vector<Endpoint> data_more{};
  std::vector<std::uint32_t> data_down{};  // the numbers of addresses that are down; `data` is 0
  bool draining = false;                   // it still refuses new lanes, as an earlier answer said
  std::uint64_t incarnation = 0;           // number of this process's last registration, 0 at the first
};

struct RegistrationAnswer {
  std::string name;                  // the name that the manager accepted; tokens are made out to it
  std::uint64_t incarnation = 0;     // number of this registration; every renewal carries it
  std::uint32_t lease_seconds = 0;   // renew at least three times within it
  PublicKey public_key{};            // verifies tokens
  ExchangePublicKey exchange_key{};  // the manager's
};

struct AggregatorLoad {
  std::uint64_t memory_in_use_bytes = 0;
  std::uint32_t lanes_active = 0;
  std::uint32_t sessions = 0;
  std::uint64_t contribution_bytes_total = 0;
};

enum class AggregatorState : std::uint8_t {
  active,
  draining,  // end the lanes in an orderly way; keep renewing until done, then unregister
  unknown,   // the lease had ended, or another process took the name: register anew
};

struct GroupRequest {
  std::string job;                  // at most 63 bytes; empty: "unnamed"
  std::string user{};               // user of the ranks' processes, at most 63 bytes; empty: not known
  std::uint32_t processes = 0;      // ranks for which the members speak, themselves included; 0: for themselves alone
  std::vector<std::string> hosts;   // by rank: that rank's host in the topology
  std::uint32_t lanes = 0;          // wanted, 1 to kLanesMax; 0: as many as save time
  bool lane_weights = false;        // the ranks deal segments by the lanes' weights
  std::uint32_t window = 0;         // segments; 0: the manager's default
  std::uint32_t segment_bytes = 0;  // 0: the manager's default
  PacketSecurity packet_security = PacketSecurity::off;
  ExchangePublicKey exchange_key{};  // the ranks'; zeros without packet_security or proofs
  std::string request_id{};          // at most 63 bytes; the same id gives the same group; empty: always a new group
  std::uint32_t levels = 0;  // exactly so many aggregators between a rank and the result; 0: the planner chooses
  std::uint64_t link_rate_bits_per_second = 0;  // rate of the slowest member's link; 0: not known
};

/// Counts that rank 0 has made since the start. payload of ended operations.
struct GroupTraffic {
  std::uint64_t operations = 0;
  std::uint64_t bytes_in_network = 0;
  std::uint64_t bytes_between_ranks = 0;
  std::uint64_t bytes_in_shared_memory = 0;
};

struct GroupAnswer {
  // With places for at most kPlacesInDescriptorMax ranks, else see group_places().
  GroupDescriptor descriptor;             // empty: use the fallback; its `group` and `epoch` still serve for a rebuild
  std::string record{};                   // for adopt_group(); keep it as it is
  std::uint32_t retry_after_seconds = 0;  // with an empty descriptor: ask for a rebuild after so long
};

struct GroupLease {
  bool known = false;  // false: the lease had ended; ask for a new group
  std::uint32_t lease_seconds = 0;
  std::uint32_t epoch = 0;       // the manager's newest for this group
  bool rebuild_advised = false;  // a tree, or a better tree, is possible: call rebuild_group at a convenient moment
  std::string reason;            // for rebuild_advised
  std::string record{};          // a fresh record, if the caller wanted one
};

/// The manager, or several of which one leads. Every call makes one connection and blocks until the answer is there or
/// a limit has passed. Calls on one client are serialised; different clients are independent.
///
/// With several, a call goes to the one that answered last. If that one cannot be reached, does not know who leads, or
/// shows a lower fence than another has shown, the call goes to the next: so it may reach two of them, and every call
/// may be made twice. Each of n gets an n-th of request_limit at a time. While one of them lives and none leads, the
/// call goes round until request_limit has passed.
///
/// Errors: unreachable (no connection, or no answer within the limit; the sentence says the URL and what to do),
/// denied (token missing or wrong), bad_argument (the manager refused a value), peer_gone (it does not know this
/// aggregator or group), mismatch (state conflict, as a stale epoch or a name in use), exhausted (no room in the
/// manager's store), retry (it is busy), corrupt (the answer makes no sense), aborted (cancel was called).
class ManagerClient {
 public:
  /// Connects to nothing yet. Errc::bad_argument: `url` is no URL.
  [[nodiscard]] static Result<ManagerClient> create(ManagerSettings settings);
  ManagerClient(ManagerClient&&) noexcept;
  ManagerClient& operator=(ManagerClient&&) noexcept;
  ~ManagerClient();

  [[nodiscard]] Result<RegistrationAnswer> register_aggregator(const AggregatorRegistration& registration);
  /// `draining`: whether this aggregator drains until it has the answer. The manager plans trees over it again once the
  /// aggregator says false.
  [[nodiscard]] Result<AggregatorState> renew_aggregator(std::string_view name, std::uint64_t incarnation,
                                                         const AggregatorLoad& load,
                                                         const std::vector<std::uint32_t>& data_down = {},
                                                         bool draining = false);
  [[nodiscard]] Status unregister_aggregator(std::string_view name);

  [[nodiscard]] Result<GroupAnswer> request_group(const GroupRequest& group);
  /// Gets the places at which `count` ranks from `first` on enter the trees of this epoch; at most kTokenPageRanksMax.
  [[nodiscard]] Result<TokenPage> group_places(std::uint64_t group, std::uint32_t epoch, std::uint32_t first,
                                               std::uint32_t count);
  /// Asks for trees at epoch + 1, without the `failed` aggregators. A repeated request gives the same epoch. `in_use`:
  /// the present trees work, and the group uses them until it has moved, as after GroupLease::rebuild_advised. Their
  /// memory stays reserved until then. An empty answer means that the group keeps them.
  [[nodiscard]] Result<GroupAnswer> rebuild_group(std::uint64_t group, std::uint32_t epoch,
                                                  const std::vector<std::string>& failed, bool in_use = false);
  /// `want_record`: the answer has a fresh record, younger than the one that came with the trees. `traffic` is for
  /// listings; an older manager refuses it.
  [[nodiscard]] Result<GroupLease> renew_group(std::uint64_t group, bool want_record = false,
                                               const std::optional<GroupTraffic>& traffic = std::nullopt);
  /// Renews a group that the manager has lost, or knows with older trees. The manager takes the group in from the
  /// record that it gave last. `hosts` are by rank, as in the request. Errc::bad_argument, mismatch: the manager
  /// refuses.
  [[nodiscard]] Result<GroupLease> adopt_group(std::uint64_t group, const std::string& record,
                                               const std::vector<std::string>& hosts);
  /// Gives the group back. A second call for the same group succeeds, too.
  [[nodiscard]] Status delete_group(std::uint64_t group);

  /// Gets any path, as "/v1/trees".
  [[nodiscard]] Result<nlohmann::json> get(std::string_view path);
  /// Calls any path with any method that carries JSON; a null body sends no body. Returns null for an empty answer.
  [[nodiscard]] Result<nlohmann::json> request(std::string_view method, std::string_view path,
                                               const nlohmann::json& body);

  /// Returns the highest fence that answers have shown; 0: none. Any thread.
  [[nodiscard]] std::uint64_t fence() const noexcept;
  /// Notes a fence that was seen elsewhere. Any thread.
  void note_fence(std::uint64_t fence) noexcept;

  /// Ends the call in progress and all later ones with Errc::aborted. Any thread.
  void cancel() noexcept;

 private:
  struct Impl;
  explicit ManagerClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::manager_client
