// Simulates planned trees, or a ring, segment by segment and hop by hop on SimGrid. It checks flow_sim, which simulates
// neither segments nor hops.
//
//   segment_sim HOP < SCENARIO     prints the seconds that the slowest rank took
//
// A scenario has one item a line. The items of each kind have numbers from 0, in their order:
//
//   rack RATE                     the rate of its uplink in each direction, bits per second
//   host RATE RACK
//   late HOST SECOND              its rank begins at this second; these lines come before the lanes and the ring
//   lane SEGMENTS BYTES WINDOW    its nodes and ranks follow
//   node HOST PARENT              PARENT is an earlier node, or -1
//   rank HOST NODE
//   ring ROUNDS BYTES RANKS       over hosts 0 to RANKS - 1; BYTES in each round
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/scale/stream.h"

namespace {

struct Edge {
  Stream* up;
  Stream* down;
};

struct Node {
  s4u::Host* host;
  Edge parent;  // null at the root
  std::vector<Edge> children;
};

struct Rank {
  s4u::Host* host;
  Edge parent;
};

struct Lane {
  unsigned segments = 0;
  double bytes = 0;
  unsigned window = 0;
  std::vector<Node> nodes;
  std::vector<Rank> ranks;
};

[[noreturn]] void refuse(const std::string& line) {
  std::fprintf(stderr, "segment_sim: not understood: %s\n", line.c_str());
  std::exit(64);
}

/// Racks, which each are a switch with its hosts, below one switch that is never a bound.
class Cluster {
 public:
  void add_rack(double bits_per_second) {
    const std::string name = "rack-" + std::to_string(racks_.size());
    s4u::NetZone* rack = s4u::create_star_zone(name)->set_parent(core_);
    auto* router = rack->create_router(name + "-router");
    rack->add_route(router, nullptr, nullptr, nullptr, std::vector<s4u::LinkInRoute>{}, true);
    const s4u::Link* up = core_->create_link(name + "-up", bits_per_second / 8)->seal();
    const s4u::Link* down = core_->create_link(name + "-down", bits_per_second / 8)->seal();
    core_->add_route(rack->get_netpoint(), nullptr, router, nullptr, {s4u::LinkInRoute(up)}, false);
    core_->add_route(nullptr, rack->get_netpoint(), nullptr, router, {s4u::LinkInRoute(down)}, false);
    racks_.push_back(rack);
  }

  void add_host(double bits_per_second, std::size_t rack, const std::string& line) {
    if (rack >= racks_.size()) refuse(line);
    s4u::NetZone* zone = racks_[rack];
    const std::string name = "host-" + std::to_string(hosts_.size());
    s4u::Host* host = zone->create_host(name, 1e9)->seal();
    const s4u::Link* up = zone->create_link(name + "-up", bits_per_second / 8)->seal();
    const s4u::Link* down = zone->create_link(name + "-down", bits_per_second / 8)->seal();
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, {s4u::LinkInRoute(up)}, false);
    zone->add_route(nullptr, host->get_netpoint(), nullptr, nullptr, {s4u::LinkInRoute(down)}, false);
    hosts_.push_back(host);
  }

  void seal() {
    for (s4u::NetZone* rack : racks_) rack->seal();
    core_->seal();
  }

  [[nodiscard]] s4u::Host* host(std::size_t number, const std::string& line) const {
    if (number >= hosts_.size()) refuse(line);
    return hosts_[number];
  }

 private:
  s4u::NetZone* core_ = s4u::create_star_zone("core");
  std::vector<s4u::NetZone*> racks_;
  std::vector<s4u::Host*> hosts_;
};

class Scenario {
 public:
  explicit Scenario(double hop_seconds) : hop_seconds_(hop_seconds) {}

  void read(std::istream& input) {
    std::string line;
    while (std::getline(input, line)) {
      std::istringstream words(line);
      std::string kind;
      words >> kind;
      const bool of_lane = kind == "node" || kind == "rank";
      if (of_lane && lanes_.empty()) refuse(line);
      if (kind == "rack") {
        cluster_.add_rack(next<double>(words, line));
      } else if (kind == "host") {
        const auto rate = next<double>(words, line);
        cluster_.add_host(rate, next<std::size_t>(words, line), line);
      } else if (kind == "late") {
        const s4u::Host* host = cluster_.host(next<std::size_t>(words, line), line);
        begins_at_[host] = next<double>(words, line);
      } else if (kind == "lane") {
        auto& lane = *lanes_.emplace_back(std::make_unique<Lane>());
        lane.segments = next<unsigned>(words, line);
        lane.bytes = next<double>(words, line);
        lane.window = next<unsigned>(words, line);
      } else if (of_lane) {
        add_child(kind == "node", words, line);
      } else if (kind == "ring") {
        const auto rounds = next<unsigned>(words, line);
        const auto bytes = next<double>(words, line);
        start_ring(rounds, bytes, next<std::size_t>(words, line), line);
      } else if (!kind.empty()) {
        refuse(line);
      }
    }
    cluster_.seal();
    for (const auto& lane : lanes_) start(*lane);
  }

 private:
  template <class T>
  static T next(std::istream& words, const std::string& line) {
    T value{};
    if (!(words >> value)) refuse(line);
    return value;
  }

  Stream* stream(s4u::Host* from, s4u::Host* to) {
    return streams_.emplace_back(std::make_unique<Stream>(from, to, hop_seconds_)).get();
  }

  void add_child(bool is_node, std::istream& words, const std::string& line) {
    Lane& lane = *lanes_.back();
    s4u::Host* host = cluster_.host(next<std::size_t>(words, line), line);
    const int parent = next<int>(words, line);
    Edge edge{nullptr, nullptr};
    if (parent >= 0) {
      if (static_cast<std::size_t>(parent) >= lane.nodes.size()) refuse(line);
      Node& above = lane.nodes[static_cast<std::size_t>(parent)];
      edge = {stream(host, above.host), stream(above.host, host)};
      above.children.push_back(edge);
    } else if (!is_node || !lane.nodes.empty()) {
      refuse(line);
    }
    if (is_node) {
      lane.nodes.push_back({host, edge, {}});
    } else {
      lane.ranks.push_back({host, edge});
    }
  }

  [[nodiscard]] double begins_at(const s4u::Host* host) const {
    const auto found = begins_at_.find(host);
    return found == begins_at_.end() ? 0 : found->second;
  }

  void start(const Lane& lane) const {
    for (const Node& node : lane.nodes) {
      s4u::Actor::create("up", node.host, [&lane, &node] {
        for (unsigned segment = 0; segment < lane.segments; ++segment) {
          for (const Edge& child : node.children) child.up->receive();
          if (node.parent.up != nullptr) {
            node.parent.up->send(lane.bytes);
          } else {
            for (const Edge& child : node.children) child.down->send(lane.bytes);
          }
        }
      });
      if (node.parent.up == nullptr) continue;
      s4u::Actor::create("down", node.host, [&lane, &node] {
        for (unsigned segment = 0; segment < lane.segments; ++segment) {
          node.parent.down->receive();
          for (const Edge& child : node.children) child.down->send(lane.bytes);
        }
      });
    }
    for (const Rank& rank : lane.ranks) {
      s4u::Actor::create("rank", rank.host, [&lane, &rank, begins_at = begins_at(rank.host)] {
        s4u::this_actor::sleep_until(begins_at);
        for (unsigned segment = 0; segment < lane.segments + lane.window; ++segment) {
          if (segment >= lane.window && segment - lane.window < lane.segments) rank.parent.down->receive();
          if (segment < lane.segments) rank.parent.up->send(lane.bytes);
        }
      });
    }
  }

  void start_ring(unsigned rounds, double bytes, std::size_t ranks, const std::string& line) {
    std::vector<Stream*> to_next;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      to_next.push_back(stream(cluster_.host(rank, line), cluster_.host((rank + 1) % ranks, line)));
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      Stream* previous = to_next[(rank + ranks - 1) % ranks];
      const s4u::Host* host = cluster_.host(rank, line);
      s4u::Actor::create("rank", cluster_.host(rank, line),
                         [rounds, bytes, next = to_next[rank], previous, begins_at = begins_at(host)] {
                           s4u::this_actor::sleep_until(begins_at);
                           for (unsigned round = 0; round < rounds; ++round) {
                             next->send(bytes);
                             previous->receive();
                           }
                         });
    }
  }

  double hop_seconds_;
  Cluster cluster_;
  std::unordered_map<const s4u::Host*, double> begins_at_;  // 0 for hosts that are not listed
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

}  // namespace

int main(int argc, char** argv) {
  s4u::Engine engine(&argc, argv);
  if (argc != 2) {
    std::fputs("usage: segment_sim HOP < SCENARIO\n", stderr);
    return 64;
  }
  use_plain_shares();
  Scenario scenario(std::atof(argv[1]));
  scenario.read(std::cin);
  engine.run();
  std::printf("%.9f\n", s4u::Engine::get_clock());
}
