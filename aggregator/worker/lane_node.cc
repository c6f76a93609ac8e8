#include "aggregator/worker/lane_node.h"

#include <algorithm>
#include <bit>

#include "aggregator/worker/session.h"
#include "tributary/protocol/assert.h"
#include "tributary/transport/shm.h"

namespace tributary::aggregator {

using transport::Accept;
using transport::Reject;

namespace {

/// `parent_tokens` are the tokens with which this aggregator joins its parent; none at the root. They have the number
/// of ranks below it.
engine::LaneShape shape_of(const TokenClaims& claims, const TokenChain& parent_tokens) {
  std::uint32_t below = 0;
  if (!parent_tokens.empty()) {
    if (const auto own = read_claims(parent_tokens.front())) below = 1U << own->scale;
  }
  return {.children = claims.children,
          .window = claims.window,
          .segment_bytes = claims.segment_bytes,
          .ranks = claims.ranks,
          .root = claims.root,
          .ranks_below = below};
}

constexpr std::uint64_t kNothingLent = 0;  // cookie of frames without a payload of the lane's memory

std::uint64_t cookie_of(const FrameHeader& header, std::span<const std::byte> payload) noexcept {
  return payload.empty() ? kNothingLent : header.sequence + 1;
}

/// Lets children on this host read their results where they lie. Returns nullptr if the transport cannot do so.
std::unique_ptr<transport::KeptMemory> lend(transport::Transport& transport, const transport::ReadableMemory& memory) {
  auto* const lender = dynamic_cast<transport::MemoryLender*>(&transport);
  if (memory.bytes().empty() || lender == nullptr) return nullptr;
  auto range = memory.range();
  return range ? lender->lend(memory.bytes().data(), std::move(*range)) : nullptr;
}

/// Sends a question to these children; `of` has a bit for each. A child that does not read fills its own queue, and
/// gets no more questions.
void ask(std::span<Session* const> children, std::uint64_t of, const FrameHeader& question) {
  for (; of != 0; of &= of - 1) {
    Session* const session = children[static_cast<std::size_t>(std::countr_zero(of))];
    if (session != nullptr) static_cast<void>(session->channel().send(question, {}, kNothingLent));
  }
}

/// Asks late ranks what they do, and the others about those that do not answer.
void ask_about_late(std::span<Session* const> children, const LaneWatch& watch, const LaneWatch::Questions& questions,
                    FrameHeader question) {
  question.count = kWantsWord;
  ask(children, questions.words, question);
  question.count = kWantsSighting;
  for (std::uint64_t about = questions.sightings; about != 0; about &= about - 1) {
    question.segment = watch.rank_of(static_cast<std::uint32_t>(std::countr_zero(about))).value_or(0);
    ask(children, watch.ranks() & ~questions.sightings, question);
  }
}

std::string_view text_of(std::span<const std::byte> payload) {
  return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}

}  // namespace

LaneNode::LaneNode(Worker& worker, const VerifiedJoin& join, std::uint64_t memory_bytes, bool shared,
                   transport::TimePoint now)
    : worker_(worker),
      claims_(join.claims),
      job_key_(WorkerTrace::key_of(join.claims.job)),
      memory_bytes_(memory_bytes),
      readable_(shared ? readable_memory(memory_bytes) : transport::ReadableMemory()),
      lane_(shape_of(join.claims, join.parent_tokens), join.claims.epoch, readable_.bytes()),
      kept_lane_(worker.transport_.keep_registered(lane_.memory())),
      children_(join.claims.children, nullptr),
      form_deadline_(now + worker.settings_.form_limit),
      bytes_up_(join.claims.window),
      pulse_(worker.settings_.pulse),
      watch_(claims_, worker.settings_, worker.metrics_),
      parent_ready_(join.claims.root) {
  TRIBUTARY_ASSERT(claims_.root == join.parent_tokens.empty(), "{} with {} tokens for a parent", name(),
                   join.parent_tokens.size());
  ++worker_.metrics_.lanes_active;
  lent_lane_ = lend(worker_.transport_, readable_);
  if (claims_.root) return;
  if (join.parent_link && worker_.settings_.link_keys) {
    parent_link_ = join.parent_link->link.name;
    worker_.settings_.link_keys->add(*parent_link_, join.parent_link->secret, join.parent_link->link.security);
  }
  connect_parent(join.parent_tokens);
}

LaneNode::~LaneNode() {
  TRIBUTARY_ASSERT(worker_.metrics_.lanes_active > 0, "{} ends, and none is active", name());
  --worker_.metrics_.lanes_active;
  worker_.budget_.give_back(memory_bytes_ + room_bytes_);
  if (parent_link_) worker_.settings_.link_keys->remove(*parent_link_);
}

/// Returns empty memory if the system gives none: results are then copied.
transport::ReadableMemory LaneNode::readable_memory(std::uint64_t bytes) {
  auto made = transport::ReadableMemory::make(bytes);
  return made ? std::move(*made) : transport::ReadableMemory();
}

std::string LaneNode::name() const {
  return "lane " + std::to_string(claims_.lane) + " of group " + std::to_string(claims_.group) + " at epoch " +
         std::to_string(claims_.epoch) + " on aggregator " + worker_.settings_.name;
}

FrameHeader LaneNode::header(FrameType type) const {
  FrameHeader h;
  h.type = type;
  h.group = claims_.group;
  h.epoch = claims_.epoch;
  h.lane = claims_.lane;
  return h;
}

void LaneNode::connect_parent(const TokenChain& tokens) {
  TRIBUTARY_ASSERT(!tokens.empty() && parent_ == nullptr, "{} connects to its parent with {} tokens", name(),
                   tokens.size());
  parent_ = worker_.transport_.connect({claims_.parent_host, claims_.parent_port}, *this, worker_.settings_.join_limit);
  worker_.give_share(*parent_, claims_);
  parent_->send_copy(header(FrameType::join), encode_join(tokens, worker_.settings_.name));
  if (const auto claims = read_claims(tokens.front())) parent_name_ = claims->aggregator;
}

Status LaneNode::add(Session& session, const VerifiedJoin& join) {
  const TokenClaims& claims = join.claims;
  if (over_ || report_) return tributary::fail(Errc::denied, Reason::lane_ended, name() + " has ended");
  const bool same_lane = claims.job == claims_.job && claims.children == claims_.children &&
                         claims.window == claims_.window && claims.segment_bytes == claims_.segment_bytes &&
                         claims.ranks == claims_.ranks && claims.root == claims_.root &&
                         claims.parent_host == claims_.parent_host && claims.parent_port == claims_.parent_port;
  if (!same_lane)
    return tributary::fail(Errc::denied, Reason::join_contradicts,
                           name() + ": this token describes the lane differently from its first child's token");
  TRIBUTARY_ASSERT(claims.child < claims_.children, "{}: a verified token of child {} of {}", name(), claims.child,
                   claims_.children);
  const std::uint64_t bit = std::uint64_t{1} << claims.child;
  if ((joined_ever_ & bit) != 0) {
    return tributary::fail(Errc::denied, Reason::joined_already,
                           name() + ": child " + std::to_string(claims.child) + " (rank " +
                               std::to_string(claims.rank) + ") has joined already");
  }
  TRIBUTARY_ASSERT(children_[claims.child] == nullptr, "{} has child {} twice", name(), claims.child);
  joined_ever_ |= bit;
  children_[claims.child] = &session;
  lane_.set_child(claims.child, 1U << claims.scale, claims.kind == ChildKind::aggregator);
  if (session.channel().shares_memory()) lane_.sums_are_read_elsewhere();
  ++joined_;
  TRIBUTARY_ASSERT(joined_ == static_cast<std::uint32_t>(std::popcount(joined_ever_)) && joined_ <= claims_.children,
                   "{}: {} of {} children have joined", name(), joined_, claims_.children);
  session.joined(shared_from_this(), claims.child, claims.rank, join.child_name);
  watch_.joined(claims.child, name_of(session), session.name().empty() ? std::optional(session.rank()) : std::nullopt);
  make_room(session);
  become_ready_when_complete();
  return {};
}

/// Makes room for a window of contributions, which the lane sums there. An only child gets no room: its contributions
/// are not summed but passed on, and must be in a buffer of the lane.
void LaneNode::make_room(Session& session) {
  if (session.channel().sealed()) return;  // no peer writes to this side's memory
  if (claims_.children < 2) return;
  const std::uint64_t bytes = worker_.transport_.room_bytes(claims_.window, claims_.segment_bytes);
  if (bytes == 0 || !worker_.budget_.reserve_spare(bytes)) return;
  room_bytes_ += bytes;
  session.channel().make_room(claims_.window, claims_.segment_bytes);
}

void LaneNode::become_ready_when_complete() {
  if (ready_ || over_ || !parent_ready_ || joined_ != claims_.children) return;
  TRIBUTARY_ASSERT(std::ranges::none_of(children_, [](Session* child) { return child == nullptr; }),
                   "{} is ready, and a child is missing", name());
  ready_ = true;
  ++worker_.metrics_.lanes_formed;
  for (Session* child : children_) child->lane_ready(header(FrameType::ready));
}

std::expected<std::span<std::byte>, engine::Refusal> LaneNode::contribution_begins(Session& session,
                                                                                   const FrameHeader& h) {
  if (h.group != claims_.group || h.lane != claims_.lane) return std::unexpected(engine::Refusal::stale_epoch);
  if (report_) return std::unexpected(engine::Refusal::over);
  if (!ready_) return std::unexpected(engine::Refusal::too_early);
  return lane_.contribution_begins(session.child(), h);
}

bool LaneNode::takes_in_place(Session& session, const FrameHeader& h) {
  return h.group == claims_.group && h.lane == claims_.lane && ready_ && !report_ && !over_ &&
         lane_.takes_in_place(session.child(), h);
}

void LaneNode::contribution_landed(Session& session, const FrameHeader& h, std::span<const std::byte> in_place) {
  if (report_) return;
  ++worker_.metrics_.contributions;
  worker_.metrics_.contribution_bytes += h.payload_bytes;
  const std::uint64_t before = lane_.segments_completed();
  const transport::TimePoint came = traced() ? worker_.transport_.now() : transport::TimePoint();
  const auto taken = lane_.contribution_landed(session.child(), h, *this, in_place);
  if (!taken && !harmless(taken.error())) {
    ++worker_.metrics_.frames_refused;
    fail(Reason::lane_broken,
         "rank " + std::to_string(session.rank()) + " sent a " + std::string(to_string(taken.error())));
    return;
  }
  if (taken && !report_ && watch_.compares()) {
    watch_.contributed(session.child(), h.sequence, h.operation, worker_.turn_time());
  }
  if (taken && came != transport::TimePoint()) [[unlikely]]
    trace(SegmentMoment::came_up, h, session.child(), h.payload_bytes, came);
  worker_.metrics_.segments_completed += lane_.segments_completed() - before;
}

void LaneNode::trace(SegmentMoment moment, const FrameHeader& h, std::uint32_t child, std::size_t bytes,
                     transport::TimePoint at) noexcept {
  worker_.trace_.add({.at_ns = at.time_since_epoch().count(),
                      .group = claims_.group,
                      .sequence = h.sequence,
                      .operation = h.operation,
                      .epoch = claims_.epoch,
                      .bytes = static_cast<std::uint32_t>(bytes),
                      .member = child,
                      .lane = static_cast<std::uint8_t>(claims_.lane),
                      .moment = moment});
}

bool LaneNode::to_parent(const FrameHeader& h, std::span<const std::byte> payload) {
  if (h.wants_result() && !h.bare()) expect_result(h);
  // At most a window of contributions waits for results, and the channel's queue is longer than any window.
  TRIBUTARY_ASSERT(parent_ != nullptr && sent_up_ - came_down_ < claims_.window,
                   "{} sends contribution {} up, {} results came down, in a window of {}", name(), sent_up_, came_down_,
                   claims_.window);
  ++sent_up_;
  bytes_up_.sent(h.sequence, payload.size());
  if (traced()) [[unlikely]]
    trace(SegmentMoment::sent_up, h, 0, payload.size(), worker_.transport_.now());
  if (parent_->send(h, payload, cookie_of(h, payload))) return !payload.empty();
  fail(Reason::lane_broken, "the channel to the parent of " + name() + " takes no more frames");
  return false;
}

/// The result lands in the buffer from which the contribution is sent, but only after the parent has received the whole
/// contribution.
void LaneNode::expect_result(const FrameHeader& contribution) {
  FrameHeader result = contribution;
  result.type = FrameType::result;
  result.flags = 0;
  if (const auto place = lane_.result_begins(result)) parent_->expect(result, *place);
}

bool LaneNode::to_child(std::uint32_t child, const FrameHeader& h, std::span<const std::byte> payload) {
  TRIBUTARY_ASSERT(child < children_.size(), "{} answers child {} of {}", name(), child, children_.size());
  Session* session = over_ ? nullptr : children_[child];
  if (session == nullptr) return false;
  ++worker_.metrics_.results;
  worker_.metrics_.result_bytes += payload.size();
  if (child == 0) {  // the lane answers child 0 first
    watch_.answered(h.sequence, worker_.turn_time());
    if (traced()) [[unlikely]]
      trace(SegmentMoment::sent_down, h, 0, payload.size(), worker_.transport_.now());
  }
  if (session->channel().send(h, payload, cookie_of(h, payload))) return !payload.empty();
  fail(Reason::lane_broken, "rank " + std::to_string(session->rank()) + " does not read its results");
  return false;
}

void LaneNode::on_sent(transport::Channel&, std::uint64_t cookie) {
  if (cookie != kNothingLent) lane_.sent(cookie - 1);
}

void LaneNode::give_back(std::uint32_t child, std::span<const std::byte> payload) {
  TRIBUTARY_ASSERT(child < children_.size(), "{} gives memory back to child {} of {}", name(), child, children_.size());
  Session* const session = children_[child];
  if (session == nullptr) return;
  session->channel().give_back(payload);
  // The child closed before its contribution was summed, and may have changed the data afterwards.
  if (session->channel().closed())
    fail(Reason::rank_gone, "rank " + std::to_string(session->rank()) + " has left " + name());
}

void LaneNode::fault(std::uint32_t child_a, std::uint32_t child_b, MismatchReport report) {
  ++worker_.metrics_.faults;
  report.rank_a = children_[child_a]->rank();
  report.rank_b = children_[child_b]->rank();
  std::array<std::byte, kMismatchReportBytes> bytes;
  encode(report, bytes);
  if (keep_report(bytes)) spread_report();
}

void LaneNode::child_fault(Session&, std::span<const std::byte> payload) {
  if (keep_report(payload)) return spread_report();
  if (!report_) fail(Reason::lane_broken, "a child of " + name() + " sent a malformed fault report");
}

bool LaneNode::keep_report(std::span<const std::byte> payload) {
  if (report_ || !decode_mismatch(payload)) return false;
  std::copy(payload.begin(), payload.end(), report_.emplace().begin());
  return true;
}

// Sends the report up to the root, which sends it down, so that all ranks of the group read the same report. Frames
// that come meanwhile are dropped.
void LaneNode::spread_report() {
  if (claims_.root) return fail(Reason::ranks_disagree, "ranks called different operations");
  TRIBUTARY_ASSERT(parent_ != nullptr, "{} has no parent to report to", name());
  parent_->send_copy(header(FrameType::fault), *report_);
}

// A child that asks but does not read the answers fills its own queue, and gets no more answers.
void LaneNode::child_asks(Session& session, const FrameHeader& h) {
  if (tells_sighting(h.count)) return watch_.seen(decode_sighting(h.count, h.segment), worker_.turn_time());
  if (tells_word(h.count)) return watch_.says(session.child(), decode_word(h.count), worker_.turn_time());
  ++worker_.metrics_.asked;
  static_cast<void>(session.channel().send(header(FrameType::alive), {}, kNothingLent));
}

void LaneNode::child_left(Session& session) {
  if (lane_.segments_in_flight() > 0)
    return fail(Reason::rank_gone, "rank " + std::to_string(session.rank()) + " left in mid-operation");
  if (!ready_)
    return fail(Reason::rank_gone, "rank " + std::to_string(session.rank()) + " left before the lane was ready");
  if (++left_ < claims_.children) return;
  TRIBUTARY_ASSERT(left_ == claims_.children && !over_, "{}: {} of {} children have left", name(), left_,
                   claims_.children);
  // All children have left, so this is an orderly end.
  over_ = true;
  ++worker_.metrics_.lanes_ended;
  for (Session*& child : children_) {
    if (child != nullptr) child->finish();
    child = nullptr;
  }
  close_parent(FrameType::leave, {});
}

std::string LaneNode::name_of(const Session& child) const {
  return child.name().empty() ? "rank " + std::to_string(child.rank()) : "aggregator " + child.name();
}

/// Takes the child out of the lane. Returns true if it left in order: it need not wait for the other children.
bool LaneNode::leaves_in_order(Session& child) {
  TRIBUTARY_ASSERT(children_[child.child()] == &child, "{}: child {} leaves, and another has its place", name(),
                   child.child());
  children_[child.child()] = nullptr;
  child.leave_node();
  return child.has_left() && lane_.segments_in_flight() == 0;
}

// A rank that gives up its lanes closes them like a rank that dies. Rank 0 knows which ranks live; this lane does not.
void LaneNode::child_gone(Session& session, const std::string& why) {
  if (over_ || leaves_in_order(session)) return;
  const bool aggregator = !session.name().empty();
  fail(LaneLoss{.who = aggregator ? LaneLoss::Who::aggregator : LaneLoss::Who::rank,
                .rank = aggregator ? 0 : session.rank(),
                .aggregator = session.name(),
                .reason = coded(aggregator ? Reason::aggregator_lost : Reason::rank_gone,
                                name_of(session) + " is gone from " + name() + ": " + why)});
}

void LaneNode::child_failed(Session& session, const LaneLoss& loss) {
  if (over_ || leaves_in_order(session)) return;
  fail(loss);
}

void LaneNode::fail(const LaneLoss& loss) {
  if (over_) return;
  over_ = true;
  const std::vector<std::byte> last_words = encode(loss);
  if (!report_) ++worker_.metrics_.lanes_failed;
  worker_.metrics_.reasons.add(split_code(loss.reason).reason);
  for (Session*& child : children_) {
    if (child == nullptr) continue;
    if (report_) child->channel().send_copy(header(FrameType::fault), *report_);
    child->end(FrameType::failed, last_words);
    child = nullptr;
  }
  close_parent(FrameType::failed, last_words);
}

void LaneNode::close_parent(FrameType type, std::span<const std::byte> payload) {
  if (!parent_ || parent_->closed()) return;
  parent_->send_copy(header(type), payload);
  parent_->close_after_flush(worker_.settings_.flush_limit);
  clear_at_ = worker_.transport_.now() + worker_.settings_.flush_limit;
}

transport::Placement LaneNode::on_header(transport::Channel&, const FrameHeader& h) {
  const bool of_a_lane = h.type == FrameType::result || h.type == FrameType::ready;
  if (of_a_lane && (h.group != claims_.group || h.lane != claims_.lane))
    return Reject{{Errc::corrupt, "a frame of another lane from the parent"}};
  switch (h.type) {
    case FrameType::result: {
      if (report_) return Accept{std::span(worker_.discard_).first(h.payload_bytes)};
      const auto place = lane_.result_begins(h);
      if (place) return Accept{*place};
      return Reject{{Errc::corrupt, "from the parent: " + std::string(to_string(place.error()))}};
    }
    case FrameType::ready:
    case FrameType::alive:
      return Accept{};
    case FrameType::fault:
    case FrameType::failed:
    case FrameType::refuse:
      text_.resize(h.payload_bytes);
      return Accept{text_};
    default:
      return Reject{{Errc::corrupt, "a " + std::string(to_string(h.type)) + " frame, which no parent sends"}};
  }
}

void LaneNode::on_frame(transport::Channel&, const FrameHeader& h, std::span<std::byte> payload) {
  if (over_) return;
  pulse_.heard();
  switch (h.type) {
    case FrameType::alive:
      return;
    case FrameType::result: {
      if (report_) return;
      ++came_down_;
      bytes_up_.came(h.sequence);
      TRIBUTARY_ASSERT(came_down_ <= sent_up_, "{}: {} results came down for {} contributions", name(), came_down_,
                       sent_up_);
      const std::uint64_t before = lane_.segments_completed();
      if (traced()) [[unlikely]]
        trace(SegmentMoment::came_down, h, 0, payload.size(), worker_.transport_.now());
      if (auto ok = lane_.result_landed(h, *this); !ok)
        return fail(Reason::lane_broken, "from the parent: " + std::string(to_string(ok.error())));
      worker_.metrics_.segments_completed += lane_.segments_completed() - before;
      return;
    }
    case FrameType::ready:
      parent_ready_ = true;
      if (parent_->shares_memory()) lane_.sums_are_read_elsewhere();
      return become_ready_when_complete();
    case FrameType::fault:
      report_.reset();  // the root's report replaces this lane's, so that all ranks read the same report
      return keep_report(payload) ? fail(Reason::ranks_disagree, "ranks called different operations")
                                  : fail(Reason::lane_broken, "a malformed fault report from the parent");
    case FrameType::failed:
      return fail(decode_lane_loss(payload));
    default:
      return fail(Reason::lane_broken, std::string(text_of(payload)));
  }
}

void LaneNode::on_closed(transport::Channel& channel, const Error& error) {
  worker_.note_changed(channel, name(), error);
  parent_lost(coded(Reason::aggregator_lost,
                    "the parent of " + name() + ", aggregator " + parent_name_ + ", is gone: " + error.message));
}

void LaneNode::parent_lost(std::string reason) {
  // The name comes from the parent's token. Its signature is not checked here, because the parent checks it.
  const bool named = is_name(parent_name_);
  fail(LaneLoss{.who = named ? LaneLoss::Who::aggregator : LaneLoss::Who::nobody,
                .aggregator = named ? parent_name_ : std::string(),
                .reason = std::move(reason)});
}

// Asks the parent only when the lane is ready: before that, form_deadline_ bounds the wait.
void LaneNode::check_parent(transport::TimePoint now) {
  if (over_ || !ready_ || claims_.root) return;
  switch (pulse_.look(now, sent_up_ > came_down_ || report_.has_value(), bytes_up_.total())) {
    case LanePulse::Verdict::wait:
      return;
    case LanePulse::Verdict::ask:
      return parent_->send_copy(header(FrameType::ask), {});
    case LanePulse::Verdict::dead:
      ++worker_.metrics_.parents_silent;
      return parent_lost(coded(Reason::aggregator_silent, "aggregator " + parent_name_ + ", the parent of " + name() +
                                                              ", does not answer: it hangs, or the way to it is dead"));
  }
}

void LaneNode::tick(transport::TimePoint now) {
  check_parent(now);
  // Before the lane is ready, children wait for others that have not joined.
  if (ready_ && !over_) ask_about_late(children_, watch_, watch_.look(now), header(FrameType::alive));
  if (ready_ || over_ || now < form_deadline_) return;
  fail(Reason::forming_timed_out, name() + " did not form in time: " + std::to_string(joined_) + " of " +
                                      std::to_string(claims_.children) + " children joined" +
                                      (parent_ready_ ? "" : ", the parent is not ready"));
}

LaneStatus LaneNode::status() const {
  LaneStatus status{.group = claims_.group,
                    .epoch = claims_.epoch,
                    .lane = claims_.lane,
                    .job = claims_.job,
                    .tenant = claims_.tenant,
                    .children = claims_.children,
                    .joined = joined_,
                    .ready = ready_,
                    .root = claims_.root,
                    .segments_completed = lane_.segments_completed(),
                    .memory_bytes = memory_bytes_};
  watch_.add_to(status, worker_.transport_.now());
  return status;
}

}  // namespace tributary::aggregator
