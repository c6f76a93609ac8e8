// Simulates coupled flows on SimGrid: a lane of a tree, or a ring, is one flow over all links that it uses, because its
// segments or rounds keep all its edges at one pace. SimGrid shares each link between the flows that use it at the same
// time.
//
//   flow_sim < SCENARIO     prints for each flow the second at which it ended, in the order of the scenario
//
// A scenario has one item a line. Flows and links have numbers from 0, in their own order:
//
//   flow BYTES WAIT AFTER           begins WAIT seconds after flow AFTER has ended, or after the start where AFTER is -1
//   link RATE FLOW:TIMES ...        bits per second; a byte of FLOW goes over this link TIMES times
//   stop FLOW SECOND WAIT HEIR      ends FLOW at SECOND, before its own end; HEIR begins WAIT seconds later, with its own
//                                   BYTES for each byte that FLOW still had
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bench/scale/stream.h"

namespace {

struct Flow {
  double bytes = 0;
  double wait = 0;
  int after = -1;
  double stop_at = -1;
  double heir_wait = 0;
  int heir = -1;
  bool is_heir = false;
  double ended_at = 0;
  double left_bytes = 0;  // bytes that were left when the flow was stopped
  s4u::Host* from = nullptr;
  s4u::Host* to = nullptr;
  std::vector<s4u::LinkInRoute> links;
  s4u::SemaphorePtr ended = nullptr;
};

[[noreturn]] void refuse(const std::string& line) {
  std::fprintf(stderr, "flow_sim: not understood: %s\n", line.substr(0, 80).c_str());
  std::exit(64);
}

Flow& at(std::vector<Flow>& flows, int number, const std::string& line) {
  if (number < 0 || static_cast<std::size_t>(number) >= flows.size()) refuse(line);
  return flows[static_cast<std::size_t>(number)];
}

void add_link(s4u::NetZone& zone, std::istream& words, std::vector<Flow>& flows, unsigned number,
              const std::string& line) {
  double bits_per_second = 0;
  if (!(words >> bits_per_second) || bits_per_second <= 0) refuse(line);
  const s4u::Link* link = zone.create_link("link-" + std::to_string(number), bits_per_second / 8)->seal();
  int flow = 0;
  char colon = 0;
  unsigned times = 0;
  while (words >> flow >> colon >> times) {
    for (unsigned it = 0; it < times; ++it) at(flows, flow, line).links.emplace_back(link);
  }
}

std::vector<Flow> read(s4u::NetZone& zone, std::istream& input) {
  std::vector<Flow> flows;
  unsigned links = 0;
  std::string line;
  while (std::getline(input, line)) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "flow") {
      Flow flow;
      if (!(words >> flow.bytes >> flow.wait >> flow.after)) refuse(line);
      if (flow.after >= 0) (void)at(flows, flow.after, line);
      flows.push_back(std::move(flow));
    } else if (kind == "link") {
      add_link(zone, words, flows, links++, line);
    } else if (kind == "stop") {
      int number = 0, heir = 0;
      double second = 0, wait = 0;
      if (!(words >> number >> second >> wait >> heir)) refuse(line);
      Flow& stopped = at(flows, number, line);
      stopped.stop_at = second;
      stopped.heir_wait = wait;
      stopped.heir = heir;
      at(flows, heir, line).is_heir = true;
    } else if (!kind.empty()) {
      refuse(line);
    }
  }
  return flows;
}

/// Carries the flow's bytes. Returns the bytes that are left if the flow is stopped before its end.
double carry(const Flow& flow, double bytes) {
  if (bytes < 1) return 0;
  auto comm = s4u::Comm::sendto_init(flow.from, flow.to)->set_payload_size(static_cast<std::uint64_t>(bytes));
  comm->start();
  if (flow.stop_at < 0) {
    comm->wait();
    return 0;
  }
  s4u::this_actor::sleep_until(flow.stop_at);
  if (comm->test()) return 0;
  const double left = comm->get_remaining();
  comm->cancel();
  return left;
}

void live(std::vector<Flow>& flows, Flow& flow) {
  double bytes = flow.bytes;
  if (flow.after >= 0) {
    Flow& before = flows[static_cast<std::size_t>(flow.after)];
    before.ended->acquire();
    before.ended->release();  // for other flows that wait
    if (flow.is_heir) bytes *= before.left_bytes;
  }
  if (flow.wait > 0) s4u::this_actor::sleep_for(flow.wait);
  flow.left_bytes = carry(flow, bytes);
  flow.ended_at = s4u::Engine::get_clock();
  flow.ended->release();
}

}  // namespace

int main(int argc, char** argv) {
  s4u::Engine engine(&argc, argv);
  use_plain_shares();
  s4u::NetZone* zone = s4u::create_full_zone("flows");
  std::vector<Flow> flows = read(*zone, std::cin);
  for (std::size_t it = 0; it < flows.size(); ++it) {
    Flow& flow = flows[it];
    if (flow.heir >= 0) {
      Flow& heir = flows[static_cast<std::size_t>(flow.heir)];
      heir.after = static_cast<int>(it);
      heir.wait = flow.heir_wait;
    }
    flow.ended = s4u::Semaphore::create(0);
    flow.from = zone->create_host("from-" + std::to_string(it), 1e9)->seal();
    flow.to = zone->create_host("to-" + std::to_string(it), 1e9)->seal();
    zone->add_route(flow.from->get_netpoint(), flow.to->get_netpoint(), nullptr, nullptr, flow.links, false);
  }
  zone->seal();
  for (Flow& flow : flows) s4u::Actor::create("flow", flow.from, [&flows, &flow] { live(flows, flow); });
  engine.run();
  for (const Flow& flow : flows) std::printf("%.9f\n", flow.ended_at);
}
