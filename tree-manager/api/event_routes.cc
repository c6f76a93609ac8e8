#include "tree-manager/api/event_routes.h"

#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "service-kit/http/query.h"
#include "tree-manager/api/replies.h"
#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kHeartbeat{5};  // a reader that is gone is noticed by the write of a heartbeat
constexpr std::size_t kEventsInChunk = 64;
constexpr std::uint64_t kEventIdMax = (1ULL << 53) - 1;  // as openapi.json says
constexpr std::string_view kStreamType = "text/event-stream";

json to_json(const Event& event) {
  json out = {
      {"id", event.id}, {"time_ms", event.time_ms}, {"kind", std::string(to_string(event.kind))}, {"text", event.text}};
  if (event.group != 0) out.update({{"group", event.group}, {"job", event.job}, {"tenant", event.tenant}});
  if (!event.aggregator.empty()) out["aggregator"] = event.aggregator;
  if (!event.code.empty()) out["code"] = event.code;
  if (event.rank) out["rank"] = *event.rank;
  return out;
}

/// JSON on one line holds no line ends, so it is one line of data.
std::string as_message(const Event& event) {
  return "id: " + std::to_string(event.id) + "\nevent: " + std::string(to_string(event.kind)) +
         "\ndata: " + to_json(event).dump(-1, ' ', false, json::error_handler_t::replace) + "\n\n";
}

/// Tells a reader that it has missed events: it must look at everything again.
std::string missed_message(std::uint64_t last) {
  return "id: " + std::to_string(last) + "\nevent: missed\ndata: {}\n\n";
}

std::string messages_of(const EventLog::Page& page, const EventReader& reader, EventStreams& streams) {
  std::string text = page.missed ? missed_message(page.last) : "";
  std::size_t heard = 0;
  for (const auto& event : page.events) {
    if (!reader.hears(*event)) continue;
    text += as_message(*event);
    ++heard;
  }
  streams.count_sent(heard, page.missed);
  return text;
}

class EventFlow final : public service::HttpFlow {
 public:
  EventFlow(const EventLog& log, EventStreams& streams, EventReader reader, std::shared_ptr<void> place,
            std::uint64_t known)
      : log_(log), streams_(streams), reader_(std::move(reader)), place_(std::move(place)), known_(known) {}

  std::optional<std::string> next() override {
    const auto now = steady_clock::now();
    const bool begins = std::exchange(begins_, false);
    const bool beats = now - sent_at_ >= kHeartbeat;
    // The token may have expired, or another manager may lead: then nothing more may be told.
    if ((beats || log_.last() != known_) && !reader_.goes_on()) return std::nullopt;
    const EventLog::Page page = log_.after(known_, kEventsInChunk);
    // The first id is that before the first event: a reader that gets only a part of this text resumes at it.
    std::string text = begins ? "retry: 1000\nid: " + std::to_string(known_) + "\n\n" : "";
    known_ = page.last;
    text += messages_of(page, reader_, streams_);
    if (text.empty() && beats) text = ":\n\n";
    if (!text.empty()) sent_at_ = now;
    return text;
  }

  void reader_is_slow() noexcept override { streams_.count_slow(); }

 private:
  const EventLog& log_;
  EventStreams& streams_;
  const EventReader reader_;
  const std::shared_ptr<void> place_;
  std::uint64_t known_;  // id of the last event that the reader has, or may not hear of
  bool begins_ = true;
  steady_clock::time_point sent_at_ = steady_clock::now();
};

/// Returns the id of the last event that the caller knows; nullopt: it names none.
Result<std::optional<std::uint64_t>> known_event(const service::HttpHead& head) {
  std::string text = head.last_event_id;
  if (!head.query.empty()) {
    const auto values = service::read_query(head.query);
    const auto after = values && values->size() == 1 ? service::value_of(*values, "after") : std::nullopt;
    if (!after || !text.empty())
      return fail(Errc::bad_argument, "either Last-Event-ID or the query after=N is expected");
    text = *after;
  } else if (text.empty()) {
    return std::nullopt;
  }
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error == std::errc{} && end == text.data() + text.size() && id <= kEventIdMax) return id;
  return fail(Errc::bad_argument, "the id of an event is a number below 2^53");
}

HttpReply list_reply(const EventLog& log, const EventReader& reader, std::optional<std::uint64_t> known) {
  if (reader.told == EventsTold::none)
    return json_reply({{"events", json::array()}, {"last", known.value_or(0)}, {"missed", false}});
  const EventLog::Page page = log.after(known.value_or(0), EventLog::kEventsMax);
  json events = json::array();
  for (const auto& event : page.events) {
    if (reader.hears(*event)) events.push_back(to_json(*event));
  }
  return json_reply({{"events", std::move(events)}, {"last", page.last}, {"missed", known && page.missed}});
}

}  // namespace

std::shared_ptr<void> EventStreams::enter(const Caller& caller) {
  const std::lock_guard lock(mutex_);
  const auto found = by_caller_.find(caller.name);
  const bool full = count_ >= kStreamsMax || (caller.stranger && strangers_ >= kStrangersMax) ||
                    (found != by_caller_.end() && found->second >= kStreamsOfOneMax);
  ++(full ? refused_ : opened_);
  if (full) return nullptr;
  ++by_caller_[caller.name];
  ++count_;
  if (caller.stranger) ++strangers_;
  return {this, [caller](EventStreams* streams) { streams->leave(caller); }};
}

void EventStreams::leave(const Caller& caller) {
  const std::lock_guard lock(mutex_);
  const auto found = by_caller_.find(caller.name);
  TRIBUTARY_ASSERT(found != by_caller_.end() && count_ != 0, "a stream ends, and {} are under way", count_);
  if (--found->second == 0) by_caller_.erase(found);
  --count_;
  if (caller.stranger) --strangers_;
}

std::size_t EventStreams::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

EventStreamCounts EventStreams::counts() const {
  return {.opened = opened_.load(),
          .refused = refused_.load(),
          .slow = slow_.load(),
          .events = events_.load(),
          .missed = missed_.load()};
}

void EventStreams::count_sent(std::size_t events, bool missed) noexcept {
  events_ += events;
  if (missed) ++missed_;
}

HttpReply events_reply(const service::HttpHead& head, const EventLog& log, EventStreams& streams, EventReader reader) {
  const auto known = known_event(head);
  if (!known) return error_reply(known.error());
  if (!head.accept.contains(kStreamType)) return list_reply(log, reader, *known);
  HttpReply reply{.content_type = std::string(kStreamType), .body = {}, .headers = {}};
  reply.headers.emplace_back("X-Accel-Buffering", "no");  // a proxy must not keep events back
  if (reader.told == EventsTold::none) {
    reply.body = "retry: 1000\n: no manager leads\n\n";
    return reply;
  }
  const std::uint64_t from = known->value_or(log.last());
  if (reader.told == EventsTold::of_the_moment) {
    const EventLog::Page page = log.after(from, EventLog::kEventsMax);
    reply.body = "retry: 1000\nid: " + std::to_string(from) + "\n\n" + messages_of(page, reader, streams);
    return reply;
  }
  auto place = streams.enter(reader.caller);
  if (!place) {
    HttpReply full = error_reply(503, "too many streams of events are under way; try again, or ask for a list");
    full.headers.emplace_back("Retry-After", "5");
    return full;
  }
  reply.flow = std::make_shared<EventFlow>(log, streams, std::move(reader), std::move(place), from);
  return reply;
}

}  // namespace tributary::manager
