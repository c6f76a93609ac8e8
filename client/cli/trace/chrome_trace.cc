#include "client/cli/trace/chrome_trace.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <ostream>
#include <tuple>
#include <utility>

namespace tributary::cli {
namespace {

using nlohmann::json;

constexpr std::int64_t kMomentLength = 1000;  // nanoseconds of a moment's slice, if the next one is not earlier

std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Returns a time in microseconds, with all nanoseconds.
std::string microseconds(std::int64_t nanoseconds) {
  std::array<char, 40> text;
  const std::uint64_t size =
      nanoseconds < 0 ? 0 - static_cast<std::uint64_t>(nanoseconds) : static_cast<std::uint64_t>(nanoseconds);
  std::snprintf(text.data(), text.size(), "%s%llu.%03llu", nanoseconds < 0 ? "-" : "",
                static_cast<unsigned long long>(size / 1000), static_cast<unsigned long long>(size % 1000));
  return text.data();
}

struct FlowPoint {
  char phase;  // s: it begins here, t: a step, f: it ends
  std::uint64_t id;
};

struct Slice {
  std::int64_t at = 0, length = 0;
  std::string name;
  const char* category = "";
  std::string arguments;  // a JSON object
  std::vector<FlowPoint> flows{};
  SegmentStop stop{};  // the moment, if the slice is one
};

struct Thread {
  std::string name;
  std::vector<Slice> slices;
};

struct Process {
  std::string name;
  std::vector<Thread> threads;

  Thread& thread(const std::string& wanted) {
    const auto known = std::ranges::find(threads, wanted, &Thread::name);
    if (known != threads.end()) return *known;
    return threads.emplace_back(Thread{.name = wanted, .slices = {}});
  }
};

std::string moment_name(const SegmentEvent& e, bool at_rank) {
  if (e.moment == SegmentMoment::sent_across) return "to rank " + std::to_string(e.member);
  if (e.moment == SegmentMoment::came_across) return "from rank " + std::to_string(e.member);
  const std::string number = " " + std::to_string(e.sequence);
  switch (e.moment) {
    case SegmentMoment::sent_up:
      return (at_rank ? "contribution" : "sum up") + number;
    case SegmentMoment::came_up:
      return "contribution" + number;
    case SegmentMoment::sent_down:
      return "results down" + number;
    case SegmentMoment::came_down:
      return "result" + number;
    case SegmentMoment::sent_across:
    case SegmentMoment::came_across:
      break;
  }
  return {};
}

std::string child_name(const TracedAggregator& aggregator, const SegmentEvent& e) {
  const auto lane = aggregator.lanes.find(lane_of(e));
  if (lane == aggregator.lanes.end() || e.member >= lane->second.size()) return "child " + std::to_string(e.member);
  const TracedChild& child = lane->second[e.member];
  if (child.rank) return "rank " + std::to_string(*child.rank);
  return child.aggregator.empty() ? "child " + std::to_string(e.member) : child.aggregator;
}

/// Returns the name of the thread of the moment.
std::string lane_name(const SegmentEvent& e) {
  if (is_message(e)) return "messages between ranks, class " + std::to_string(e.lane);
  return "lane " + std::to_string(e.lane) + ", group " + std::to_string(e.group) + ", epoch " + std::to_string(e.epoch);
}

/// Returns the arguments of a moment's slice, without the closing brace.
std::string moment_arguments(const SegmentEvent& e) {
  return "{\"operation\":" + std::to_string(e.operation) + ",\"bytes\":" + std::to_string(e.bytes);
}

class Writer {
 public:
  Writer(const TraceParts& parts, const SegmentWays& ways, std::int64_t from)
      : parts_(parts), ways_(ways), from_(from), process_of_(parts.ranks.size() + parts.aggregators.size()) {
    for (std::size_t i = 0; i < parts.ranks.size(); ++i) add_rank(i);
    for (std::size_t i = 0; i < parts.aggregators.size(); ++i) add_aggregator(i);
    for (Process& process : processes_) {
      for (Thread& thread : process.threads) settle(thread);
    }
    add_flows();
  }

  void write(std::ostream& out, const std::vector<std::string>& notes) const;
  [[nodiscard]] const ChromeCounts& counts() const noexcept { return counts_; }

 private:
  void add_rank(std::size_t number);
  void add_operations(Process& process, const TracedRank& rank);
  void add_aggregator(std::size_t number);
  void add_moment(std::size_t participant, std::size_t event, std::string arguments);
  static void settle(Thread& thread);
  void add_flows();
  void add_flow(const std::vector<SegmentStop>& way, const std::map<SegmentStop, Slice*>& slices) const;
  void write_process(std::ostream& out, std::size_t number) const;

  const TraceParts& parts_;
  const SegmentWays& ways_;
  const std::int64_t from_;
  std::vector<Process> processes_;
  std::vector<std::size_t> process_of_;  // by participant
  ChromeCounts counts_;
};

/// The communicators of one process of the job share a process of the trace.
void Writer::add_rank(std::size_t number) {
  const TracedRank& rank = parts_.ranks[number];
  const auto same = std::ranges::find_if(parts_.ranks, [&rank](const TracedRank& other) {
    return other.pid == rank.pid && other.clock == rank.clock && other.host == rank.host;
  });
  const auto first = static_cast<std::size_t>(same - parts_.ranks.begin());
  if (first == number) {
    processes_.push_back({.name = "rank " + std::to_string(rank.rank) + " on " + rank.host, .threads = {}});
    process_of_[number] = processes_.size() - 1;
  } else {
    process_of_[number] = process_of_[first];
  }
  add_operations(processes_[process_of_[number]], rank);
  for (std::size_t event = 0; event < rank.segments.size(); ++event) {
    const SegmentEvent& e = rank.segments[event];
    add_moment(number, event, moment_arguments(e) + "}");
  }
}

/// Operations overlap: each goes to the first thread on which the one before has ended.
void Writer::add_operations(Process& process, const TracedRank& rank) {
  std::vector<const TracedOperation*> operations;
  for (const TracedOperation& o : rank.operations) {
    if (o.queued || o.started) operations.push_back(&o);
  }
  const auto begin_of = [this](const TracedOperation& o) {
    return std::max(o.started ? *o.started : *o.queued, from_);
  };
  std::ranges::stable_sort(operations, {}, [&](const TracedOperation* o) { return begin_of(*o); });
  const std::int64_t taken = parts_.clocks[rank.clock].steady;
  std::vector<std::int64_t> free_at;  // by thread
  for (const TracedOperation* o : operations) {
    const std::int64_t begin = begin_of(*o);
    const std::int64_t end = std::max(o->ended.value_or(taken), begin + 1);
    const auto row = static_cast<std::size_t>(
        std::ranges::find_if(free_at, [begin](std::int64_t at) { return at <= begin; }) - free_at.begin());
    if (row == free_at.size()) free_at.push_back(0);
    free_at[row] = end;
    const std::string name = "operations, group " + rank.group + (row == 0 ? "" : " (" + std::to_string(row + 1) + ")");
    json arguments{{"number", o->number}, {"bytes", o->bytes}, {"path", o->path}, {"outcome", o->outcome}};
    if (o->queued) arguments["queued_us_before"] = static_cast<double>(begin - *o->queued) / 1e3;
    process.thread(name).slices.push_back({.at = begin,
                                           .length = end - begin,
                                           .name = o->call,
                                           .category = "operation",
                                           .arguments = text_of(arguments)});
    ++counts_.operations;
  }
}

void Writer::add_aggregator(std::size_t number) {
  const TracedAggregator& aggregator = parts_.aggregators[number];
  const std::size_t participant = parts_.ranks.size() + number;
  process_of_[participant] = processes_.size();
  processes_.push_back({.name = "aggregator " + aggregator.name + " on " + aggregator.host, .threads = {}});
  for (std::size_t event = 0; event < aggregator.segments.size(); ++event) {
    const SegmentEvent& e = aggregator.segments[event];
    const bool came_up = e.moment == SegmentMoment::came_up;
    add_moment(participant, event,
               moment_arguments(e) + (came_up ? ",\"from\":" + text_of(child_name(aggregator, e)) : "") + "}");
  }
}

void Writer::add_moment(std::size_t participant, std::size_t event, std::string arguments) {
  const SegmentStop stop{.participant = participant, .event = event};
  const SegmentEvent& e = event_at(parts_, stop);
  processes_[process_of_[participant]]
      .thread(lane_name(e))
      .slices.push_back({.at = e.at_ns,
                         .length = 0,
                         .name = moment_name(e, participant < parts_.ranks.size()),
                         .category = "segment",
                         .arguments = std::move(arguments),
                         .stop = stop});
}

/// Sorts a thread's slices, and ends each moment before the next one. Operations of one thread do not overlap.
void Writer::settle(Thread& thread) {
  std::ranges::stable_sort(thread.slices, {}, &Slice::at);
  for (std::size_t i = 1; i < thread.slices.size(); ++i)
    thread.slices[i].at = std::max(thread.slices[i].at, thread.slices[i - 1].at + 1);
  for (std::size_t i = 0; i < thread.slices.size(); ++i) {
    Slice& slice = thread.slices[i];
    const bool last = i + 1 == thread.slices.size();
    const std::int64_t room = last ? INT64_MAX : thread.slices[i + 1].at - slice.at;
    slice.length = std::min(slice.length > 0 ? slice.length : kMomentLength, room);
  }
}

void Writer::add_flows() {
  std::map<SegmentStop, Slice*> slices;
  for (Process& process : processes_) {
    for (Thread& thread : process.threads) {
      for (Slice& slice : thread.slices) {
        if (std::string_view(slice.category) == "segment") slices[slice.stop] = &slice;
      }
    }
  }
  for (std::size_t rank = 0; rank < parts_.ranks.size(); ++rank) {
    const auto& segments = parts_.ranks[rank].segments;
    for (std::size_t event = 0; event < segments.size(); ++event) {
      if (segments[event].moment != SegmentMoment::sent_up) continue;
      const auto way = ways_.way_of({.participant = rank, .event = event});
      if (way.size() < 2) continue;
      ++counts_.segments;
      add_flow(way, slices);
    }
  }
  for (const MessagePair& message : ways_.messages()) {
    ++counts_.messages;
    add_flow({message.sent, message.came}, slices);
  }
}

void Writer::add_flow(const std::vector<SegmentStop>& way, const std::map<SegmentStop, Slice*>& slices) const {
  const std::uint64_t id = counts_.segments + counts_.messages;
  for (const SegmentStop& stop : way) {
    const char phase = stop == way.front() ? 's' : stop == way.back() ? 'f' : 't';
    slices.at(stop)->flows.push_back({.phase = phase, .id = id});
  }
}

void Writer::write(std::ostream& out, const std::vector<std::string>& notes) const {
  out << R"({"displayTimeUnit":"ns","otherData":)" << text_of({{"notes", notes}}) << R"(,"traceEvents":[)";
  for (std::size_t i = 0; i < processes_.size(); ++i) write_process(out, i);
  out << "]}\n";
}

void Writer::write_process(std::ostream& out, std::size_t number) const {
  const Process& process = processes_[number];
  const std::size_t pid = number + 1;
  const auto metadata = [&](const char* name, std::size_t tid, const json& arguments) {
    out << R"({"ph":"M","pid":)" << pid << R"(,"tid":)" << tid << R"(,"name":")" << name << R"(","args":)"
        << text_of(arguments) << "}";
  };
  if (number > 0) out << ",\n";
  metadata("process_name", 0, {{"name", process.name}});
  out << ",\n";
  metadata("process_sort_index", 0, {{"sort_index", pid}});
  for (std::size_t i = 0; i < process.threads.size(); ++i) {
    const std::size_t tid = i + 1;
    out << ",\n";
    metadata("thread_name", tid, {{"name", process.threads[i].name}});
    for (const Slice& slice : process.threads[i].slices) {
      const std::string place = R"(,"pid":)" + std::to_string(pid) + R"(,"tid":)" + std::to_string(tid) + R"(,"ts":)" +
                                microseconds(slice.at - from_);
      out << ",\n"
          << R"({"ph":"X")" << place << R"(,"dur":)" << microseconds(slice.length) << R"(,"cat":")" << slice.category
          << R"(","name":)" << text_of(slice.name) << R"(,"args":)" << slice.arguments << "}";
      for (const FlowPoint& flow : slice.flows) {
        out << ",\n"
            << R"({"ph":")" << flow.phase << '"' << place << R"(,"id":)" << flow.id
            << R"(,"cat":"segment","name":"segment")" << (flow.phase == 'f' ? R"(,"bp":"e"})" : "}");
      }
    }
  }
}

}  // namespace

ChromeCounts write_chrome_trace(std::ostream& out, const TraceParts& parts, const SegmentWays& ways, std::int64_t from,
                                const std::vector<std::string>& notes) {
  const Writer writer(parts, ways, from);
  writer.write(out, notes);
  return writer.counts();
}

}  // namespace tributary::cli
