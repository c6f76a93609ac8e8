// Simulates one allreduce on SimGrid's flow model: every host has one link in each direction, and all links meet at one
// switch that is never the bound. SimGrid shares each link between the flows that use it at the same time; this program
// simulates segments, windows, lanes, and rounds.
//
//   scale_sim PATH RANKS AGGREGATORS RATE AGGREGATOR_RATE BYTES SEGMENT WINDOW HOP PROCESSOR
//
// PATH is ring, tree or split; rates are bits per second. WINDOW is the number of bytes in flight for each child of a
// single lane; more lanes divide it. HOP is in seconds. PROCESSOR is the time in seconds for which a byte keeps one of
// two cores busy at each of its ends; 0: processors are not a bound. Prints the seconds that the slowest rank took.
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/scale/stream.h"

namespace {

struct Setting {
  std::string path;
  unsigned ranks;
  unsigned aggregators;
  double rate;
  double aggregator_rate;
  double bytes;
  double segment_bytes;
  double window_bytes;
  double hop_seconds;
  double processor_seconds_per_byte;
  Machine* machine = nullptr;
};

using Streams = std::vector<std::unique_ptr<Stream>>;
using Hosts = std::vector<s4u::Host*>;

s4u::Host* add_host(s4u::NetZone& zone, const std::string& name, double bits_per_second) {
  s4u::Host* host = zone.create_host(name, 1e9)->seal();
  const double bytes_per_second = bits_per_second / 8;
  const s4u::Link* up = zone.create_link(name + "-up", bytes_per_second)->seal();
  const s4u::Link* down = zone.create_link(name + "-down", bytes_per_second)->seal();
  zone.add_route(host->get_netpoint(), nullptr, nullptr, nullptr, {s4u::LinkInRoute(up)}, false);
  zone.add_route(nullptr, host->get_netpoint(), nullptr, nullptr, {s4u::LinkInRoute(down)}, false);
  return host;
}

/// A ring takes 2(N-1) rounds, each with an N-th of the vector.
void start_ring(const Setting& setting, double bytes, const Hosts& ranks, Streams& streams) {
  const std::size_t first = streams.size();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    streams.push_back(
        std::make_unique<Stream>(ranks[rank], ranks[(rank + 1) % ranks.size()], setting.hop_seconds, setting.machine));
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    Stream* next = streams[first + rank].get();
    Stream* previous = streams[first + (rank + ranks.size() - 1) % ranks.size()].get();
    s4u::Actor::create("rank", ranks[rank], [next, previous, bytes, count = ranks.size()] {
      for (std::size_t round = 0; round < 2 * (count - 1); ++round) {
        next->send(bytes / static_cast<double>(count));
        previous->receive();
      }
    });
  }
}

/// The ranks run vectors of 512 KiB a rank and more as two rings of half the vector (docs/performance.md).
void start_rings(const Setting& setting, double bytes, const Hosts& ranks, Streams& streams) {
  const unsigned rings = bytes / static_cast<double>(ranks.size()) >= 512.0 * 1024 ? 2 : 1;
  for (unsigned ring = 0; ring < rings; ++ring) {
    start_ring(setting, bytes / rings, ranks, streams);
  }
}

/// Segments in flight for each child of a lane, divided in the same way as in window_at() of
/// tree-manager/planner/flight.h.
unsigned window_of_lane(const Setting& setting) {
  const double alone = std::max(1.0, setting.window_bytes / setting.segment_bytes);
  const unsigned lanes = setting.aggregators;
  const double divided = lanes <= 1 ? alone : std::min(alone, std::max(std::ceil(2 * alone / lanes), 2.0));
  const double part = lanes * setting.aggregator_rate / (setting.ranks * setting.rate);
  if (part >= 1) return static_cast<unsigned>(divided);
  return static_cast<unsigned>(std::min(divided, std::max(std::floor(4 * part * alone / lanes + 0.999), 2.0)));
}

/// A lane of one level: all ranks are children of one aggregator.
void start_lane(const Setting& setting, unsigned segments, s4u::Host* aggregator, const Hosts& ranks,
                Streams& streams) {
  const unsigned window = window_of_lane(setting);
  std::vector<Stream*> ups;
  std::vector<Stream*> downs;
  for (s4u::Host* rank : ranks) {
    ups.push_back(
        streams.emplace_back(std::make_unique<Stream>(rank, aggregator, setting.hop_seconds, setting.machine)).get());
    downs.push_back(
        streams.emplace_back(std::make_unique<Stream>(aggregator, rank, setting.hop_seconds, setting.machine)).get());
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    s4u::Actor::create("rank", ranks[rank],
                       [segments, window, bytes = setting.segment_bytes, up = ups[rank], down = downs[rank]] {
                         for (unsigned segment = 0; segment < segments + window; ++segment) {
                           if (segment >= window && segment - window < segments) down->receive();
                           if (segment < segments) up->send(bytes);
                         }
                       });
  }
  s4u::Actor::create("aggregator", aggregator, [segments, bytes = setting.segment_bytes, ups, downs] {
    for (unsigned segment = 0; segment < segments; ++segment) {
      for (Stream* up : ups) up->receive();
      for (Stream* down : downs) down->send(bytes);
    }
  });
}

/// The part of the bytes that the trees carry in the division that is best for the links (docs/performance.md,
/// "split").
double tree_share(const Setting& setting) {
  if (setting.path == "tree") return 1;
  if (setting.path == "ring" || setting.aggregators == 0) return 0;
  const double rho = 2.0 * (setting.ranks - 1) / setting.ranks;
  const double c = std::min(1.0, setting.aggregators * setting.aggregator_rate / (setting.ranks * setting.rate));
  return c * rho / (1 + c * (rho - 1));
}

void start(const Setting& setting, const Hosts& ranks, const Hosts& aggregators, Streams& streams) {
  const auto all = static_cast<unsigned>(std::max(1.0, setting.bytes / setting.segment_bytes + 0.5));
  const auto on_trees = static_cast<unsigned>(all * tree_share(setting) + 0.5);
  for (unsigned lane = 0; lane < aggregators.size() && on_trees != 0; ++lane) {
    const unsigned segments = on_trees / setting.aggregators + (lane < on_trees % setting.aggregators ? 1 : 0);
    start_lane(setting, segments, aggregators[lane], ranks, streams);
  }
  if (on_trees < all) start_rings(setting, setting.bytes * (all - on_trees) / all, ranks, streams);
}

}  // namespace

int main(int argc, char** argv) {
  s4u::Engine engine(&argc, argv);
  if (argc != 11) {
    std::fputs("usage: scale_sim PATH RANKS AGGREGATORS RATE AGGREGATOR_RATE BYTES SEGMENT WINDOW HOP PROCESSOR\n",
               stderr);
    return 64;
  }
  Setting setting{.path = argv[1],
                  .ranks = static_cast<unsigned>(std::atoi(argv[2])),
                  .aggregators = static_cast<unsigned>(std::atoi(argv[3])),
                  .rate = std::atof(argv[4]),
                  .aggregator_rate = std::atof(argv[5]),
                  .bytes = std::atof(argv[6]),
                  .segment_bytes = std::atof(argv[7]),
                  .window_bytes = std::atof(argv[8]),
                  .hop_seconds = std::atof(argv[9]),
                  .processor_seconds_per_byte = std::atof(argv[10])};
  use_plain_shares();
  s4u::NetZone* zone = s4u::create_star_zone("links");
  Hosts ranks;
  Hosts aggregators;
  for (unsigned it = 0; it < setting.ranks; ++it)
    ranks.push_back(add_host(*zone, "rank-" + std::to_string(it), setting.rate));
  for (unsigned it = 0; it < setting.aggregators; ++it) {
    aggregators.push_back(add_host(*zone, "aggregator-" + std::to_string(it), setting.aggregator_rate));
  }
  constexpr int kCores = 2;
  constexpr double kSpeed = 1e9;
  Machine machine(zone->create_host("cores", kSpeed)->set_core_count(kCores)->seal(),
                  setting.processor_seconds_per_byte);
  if (setting.processor_seconds_per_byte > 0) setting.machine = &machine;
  zone->seal();
  Streams streams;
  start(setting, ranks, aggregators, streams);
  engine.run();
  std::printf("%.9f\n", s4u::Engine::get_clock());
}
