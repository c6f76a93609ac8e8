#include "client/collectives/in_network/lane_link.h"

#include <algorithm>
#include <cstring>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/reason.h"
#include "tributary/transport/device_memory.h"

namespace tributary::client {

using transport::Accept;
using transport::Placement;
using transport::Reject;

namespace {

Segmentation segmentation_of(const Operation& operation, const LaneSettings& settings, const LaneDescriptor& lane) {
  return {operation.signature, settings.nranks,
          segment_bytes_of(operation.signature, lane.segment_bytes, settings.one_level)};
}

/// Returns how many segments of this operation may be in flight. Segments of exact sums may be short; as many bytes of
/// them as of full segments fill the link.
std::uint64_t segments_ahead(const Operation& operation, std::uint32_t full, const LaneSettings& settings,
                             const LaneDescriptor& lane) {
  const std::uint64_t bytes = segment_bytes_of(operation.signature, lane.segment_bytes, settings.one_level);
  TRIBUTARY_ASSERT(bytes > 0, "{} has segments without an element", to_string(operation.signature));
  return std::min<std::uint64_t>(lane.window, std::uint64_t{full} * lane.segment_bytes / bytes);
}

/// True if this rank's contribution is a form: of an exact sum between hosts.
bool sends_form(const SequenceEntry& e) noexcept {
  return is_exact_of_hosts(e.signature.op) && row_of(e.signature.collective).reduces;
}

/// Returns the segment's length as a part of a full segment's; 0 if it is shorter than the operation's segments may be:
/// it does not measure the round trip.
double part_of_full(const Operation& operation, const Segment& segment, const LaneSettings& settings,
                    const LaneDescriptor& lane) noexcept {
  const std::size_t bytes = segment.count * operation.element_bytes();
  if (bytes != segment_bytes_of(operation.signature, lane.segment_bytes, settings.one_level)) return 0;
  return static_cast<double>(bytes) / lane.segment_bytes;
}

bool traced(const LaneSettings& settings) noexcept {
  return settings.trace != nullptr && settings.trace->on();
}

/// Adds a moment of the rank's trace.
void trace(const LaneSettings& settings, SegmentMoment moment, const SequenceEntry& e, std::size_t bytes,
           transport::TimePoint at) noexcept {
  settings.trace->add({.at_ns = at.time_since_epoch().count(),
                       .group = settings.group,
                       .sequence = e.sequence,
                       .operation = e.number,
                       .epoch = settings.epoch,
                       .bytes = static_cast<std::uint32_t>(bytes),
                       .member = settings.rank,
                       .lane = static_cast<std::uint8_t>(settings.lane),
                       .moment = moment},
                      at);
}

/// Returns whether an `alive` frame asks something, and may be answered: an aggregator asks a few times a second at most.
bool may_answer(const LaneSettings& settings, const FrameHeader& alive) {
  using Question = OwnTroubles::Question;
  if (alive.count != kWantsWord && alive.count != kWantsSighting) return false;
  if (alive.count == kWantsSighting && !settings.neighbours) return false;
  const Question question = alive.count == kWantsWord ? Question::word : Question::sighting;
  return !settings.troubles || settings.troubles->may_answer(question, transport::Clock::now());
}

/// Returns the frame with what this rank sees of another one; nullopt if it sees nothing.
std::optional<FrameHeader> sighting_for(const LaneSettings& settings, const FrameHeader& question, FrameHeader answer) {
  if (!settings.neighbours) return std::nullopt;
  const auto sighting = settings.neighbours->sight(question.segment, transport::Clock::now());
  if (!sighting) return std::nullopt;
  answer.segment = sighting->rank;
  answer.count = encode(*sighting);
  return answer;
}

}  // namespace

LaneLink::LaneLink(LaneUser& user, const LaneDescriptor& descriptor, const LaneSettings& settings)
    : user_(user),
      descriptor_(descriptor),
      settings_(settings),
      entries_(std::size_t{2} * descriptor.window),
      retained_(std::make_shared<kernels::Pages>(std::size_t{descriptor.window} * descriptor.segment_bytes)),
      staging_(descriptor_),
      forms_(descriptor_),
      window_({.reserved = descriptor.window,
               .segment_bytes = descriptor.segment_bytes,
               .rates_known = settings.rates_known}),
      cursor_operation_(settings.first_operation),
      bytes_(descriptor.window),
      pulse_(settings.pulse) {}

void LaneLink::connect(transport::Transport& transport, transport::Duration limit) {
  const LaneEntry& entry = descriptor_.entries[0];
  staging_.use(transport);
  forms_.use(transport);
  channel_ = transport.connect(entry.aggregator, *this, limit);
  staging_.use(*channel_);
  channel_->send_copy(header_of(FrameType::join), encode_join(entry.tokens, {}));
}

FrameHeader LaneLink::header_of(FrameType type) const {
  FrameHeader header;
  header.type = type;
  header.group = settings_.group;
  header.epoch = settings_.epoch;
  header.lane = static_cast<std::uint8_t>(settings_.lane);
  return header;
}

/// Tells the aggregator about this rank. An older aggregator takes the frame for a question, and answers it.
void LaneLink::send_word() {
  FrameHeader header = header_of(FrameType::ask);
  const auto& troubles = settings_.troubles;
  header.count = encode(RankWord{.troubles = troubles ? troubles->until(transport::Clock::now()) : RankTroubles{},
                                 .idle = contributed_ == prefix_ && advance_cursor() == nullptr});
  channel_->send_copy(header, {});
}

void LaneLink::look(transport::TimePoint now, bool tell) {
  if (!ready_ || over_) return;
  if (tell) send_word();
  switch (pulse_.look(now, contributed_ > prefix_, bytes_.total())) {
    case LanePulse::Verdict::wait:
      return;
    case LanePulse::Verdict::ask:
      return channel_->send_copy(header_of(FrameType::ask), {});
    case LanePulse::Verdict::dead:
      return fail(coded(Reason::aggregator_silent, "aggregator " + aggregator() + " (" +
                                                       to_string(descriptor_.entries[0].aggregator) +
                                                       ") does not answer: it hangs, or the way to it is dead"));
  }
}

Status LaneLink::prepare(transport::Transport& transport, const std::shared_ptr<DirectDevice>& device,
                         const std::vector<std::span<const std::byte>>& memory) {
  auto* const channel = dynamic_cast<transport::ReachesDeviceMemory*>(channel_.get());
  if (channel == nullptr)
    return tributary::fail(Errc::unsupported, "the transport cannot send from or receive into this kind of memory");
  for (const auto& range : memory) {
    if (auto ok = channel->reach(range); !ok) return ok;
  }
  if (direct_lane(device.get()) != nullptr) return {};
  auto lane = DirectLane::make(transport, device, descriptor_.window, descriptor_.segment_bytes);
  if (!lane) return std::unexpected(lane.error());
  if (auto ok = channel->reach((*lane)->places()); !ok) return ok;
  direct_lanes_.push_back(std::move(*lane));
  return {};
}

DirectLane* LaneLink::direct_lane(const DirectDevice* device) const noexcept {
  for (const auto& lane : direct_lanes_) {
    if (&lane->device() == device) return lane.get();
  }
  return nullptr;
}

bool LaneLink::has_data(const SequenceEntry& e) const noexcept {
  switch (pattern_of(e.signature.collective)) {
    case Pattern::all_to_all_ranks:
    case Pattern::all_to_one:
      return true;
    case Pattern::one_to_all:
      return e.segment.owner == settings_.rank;
    case Pattern::nothing:
      return false;
  }
  return false;
}

bool LaneLink::wants_result(const SequenceEntry& e) const noexcept {
  switch (pattern_of(e.signature.collective)) {
    case Pattern::all_to_all_ranks:
      return true;
    case Pattern::all_to_one:
      return e.segment.owner == settings_.rank;
    case Pattern::one_to_all:
      return e.segment.owner != settings_.rank;
    case Pattern::nothing:
      return false;
  }
  return false;
}

FrameHeader LaneLink::header_for(const SequenceEntry& e) const {
  FrameHeader header = header_of(FrameType::contribution);
  header.sequence = e.sequence;
  header.operation = e.number;
  header.segment = e.segment_index;
  header.set_signature(e.signature);
  header.flags = static_cast<std::uint16_t>((has_data(e) ? 0U : frame_flags::kBare) |
                                            (wants_result(e) ? frame_flags::kWantsResult : 0U));
  return header;
}

Operation* LaneLink::advance_cursor() {
  for (;;) {
    if (cursor_operation_ < user_.first_operation_kept()) {
      cursor_operation_ = user_.first_operation_kept();
      cursor_open_ = false;
    }
    Operation* operation = user_.started_operation(cursor_operation_);
    if (operation == nullptr) return nullptr;
    if (!cursor_open_) cursor_segment_ = settings_.turns.first(cursor_operation_);
    cursor_open_ = true;
    if (cursor_segment_ < operation->segments) return operation;
    ++cursor_operation_;
    cursor_open_ = false;
  }
}

std::uint64_t LaneLink::first_unfinished(const Operation& operation, std::uint64_t hi) const noexcept {
  for (std::uint64_t sequence = hi; sequence < contributed_; ++sequence) {
    const SequenceEntry* e = entry(sequence);
    if (e != nullptr && e->number == operation.number) return e->segment_index;
  }
  if (operation.number < cursor_operation_) return operation.segments;
  if (operation.number == cursor_operation_ && cursor_open_) return cursor_segment_;
  return settings_.turns.first(operation.number);
}

/// Returns whether the input of the segment at the cursor has come. A segment without data of this rank needs no input.
bool LaneLink::input_there(const Operation& operation) const {
  if (operation.input_whole()) return true;
  const SequenceEntry e{.signature = operation.signature,
                        .segment = segmentation_of(operation, settings_, descriptor_).at(cursor_segment_)};
  return !has_data(e) ||
         operation.staged->input_ready(operation.input_of(e.segment) + e.segment.count * operation.element_bytes());
}

bool LaneLink::contribute_one(transport::TimePoint now) {
  Operation* const next = advance_cursor();
  if (next == nullptr) return false;
  Operation& operation = *next;
  if (contributed_ >= prefix_ + segments_ahead(operation, window_.segments(), settings_, descriptor_)) return false;
  if (!input_there(operation)) return false;
  if (operation.direct && overwrites(operation) &&
      !direct_lane(operation.direct->device().get())->place_free(contributed_)) {
    return false;
  }
  SequenceEntry& e = entry_slot(contributed_);
  e.sequence = contributed_;
  e.operation = &operation;
  e.retained_in = nullptr;
  e.number = operation.number;
  e.segment_index = static_cast<std::uint32_t>(cursor_segment_);
  e.signature = operation.signature;
  e.segment = segmentation_of(operation, settings_, descriptor_).at(cursor_segment_);
  const FrameHeader header = header_for(e);
  // Announce the result once, although the channel may take the contribution only at a later try.
  if (wants_result(e) && expected_ <= contributed_) {
    expect_result(e, header);
    expected_ = contributed_ + 1;
  }
  const transport::TimePoint before = traced(settings_) ? transport::Clock::now() : transport::TimePoint();
  std::span<const std::byte> payload;
  if (!header.bare() && sends_form(e)) {
    payload = forms_.make(e.sequence, operation, e.segment);
  } else if (!header.bare()) {
    payload = {operation.input_of(e.segment), e.segment.count * operation.element_bytes()};
  }
  if (!channel_->send(header, payload, 0)) return false;
  if (before != transport::TimePoint()) [[unlikely]]
    trace(settings_, SegmentMoment::sent_up, e, payload.size(), before);
  bytes_sent_ += payload.size();
  bytes_.sent(contributed_, payload.size());
  window_.sent(contributed_, part_of_full(operation, e.segment, settings_, descriptor_), now);
  ++contributed_;
  cursor_segment_ = settings_.turns.after(operation.number, cursor_segment_);
  return true;
}

void LaneLink::pump(transport::TimePoint now) {
  if (!ready_ || over_) return;
  while (contribute_one(now)) {
  }
}

/// Returns whether the channel may write a whole result straight to the buffer. Other results that would overwrite
/// input go to `staging` first, so that no part of a result overwrites the input.
bool LaneLink::takes_in_place(transport::Channel&, const FrameHeader& header) {
  if (over_ || header.type != FrameType::result) return false;
  const Placement placement = place_result(header);
  const auto* const place = std::get_if<Accept>(&placement);
  return place != nullptr && !place->payload.empty() && place->payload.data() == staging_.at(prefix_);
}

Placement LaneLink::on_header(transport::Channel&, const FrameHeader& header) {
  if (over_) return Reject{{Errc::peer_gone, "this rank has given up the lane"}};
  switch (header.type) {
    case FrameType::result:
      return place_result(header);
    case FrameType::ready:
    case FrameType::alive:
      return Accept{};
    case FrameType::fault:
    case FrameType::failed:
    case FrameType::refuse:
      text_.resize(header.payload_bytes);
      return Accept{text_};
    default:
      return Reject{
          {Errc::corrupt, "a " + std::string(to_string(header.type)) + " frame, which no aggregator sends to a rank"}};
  }
}

Placement LaneLink::place_result(const FrameHeader& header) {
  const auto refuse = [](const char* why) { return Reject{{Errc::corrupt, why}}; };
  if (header.epoch != settings_.epoch || header.group != settings_.group || header.lane != settings_.lane)
    return refuse("a result of another lane");
  if (header.sequence != prefix_ || prefix_ >= contributed_) return refuse("a result out of sequence");
  const SequenceEntry& e = entry_slot(prefix_);
  if (header.operation != e.number || header.segment != e.segment_index || header.signature() != e.signature)
    return refuse("a result for another operation");
  if (header.bare() == wants_result(e))
    return refuse(header.bare() ? "a result without its data" : "result data that was not asked for");
  const std::size_t bytes = header.bare() ? 0 : e.segment.count * size_of(e.signature.dtype);
  if (header.payload_bytes != bytes) return refuse("a result of the wrong length");
  if (bytes == 0) return Accept{};
  return Accept{{result_place(e), bytes}};
}

std::byte* LaneLink::result_place(const SequenceEntry& e) noexcept {
  const Operation& operation = *e.operation;
  if (!overwrites(operation)) return operation.result_of(e.segment);
  return operation.direct ? direct_lane(operation.direct->device().get())->place(e.sequence) : staging_.at(e.sequence);
}

/// Announces to the channel the header that place_result() will accept, and the place of the payload.
void LaneLink::expect_result(const SequenceEntry& e, const FrameHeader& contribution) {
  FrameHeader result = contribution;
  result.type = FrameType::result;
  result.flags = 0;
  result.payload_bytes = static_cast<std::uint32_t>(e.segment.count * size_of(e.signature.dtype));
  if (result.payload_bytes > 0) channel_->expect(result, {result_place(e), result.payload_bytes});
}

void LaneLink::on_frame(transport::Channel&, const FrameHeader& header, std::span<std::byte> payload) {
  if (over_) return;
  pulse_.heard();
  const auto text = [&] { return std::string(reinterpret_cast<const char*>(payload.data()), payload.size()); };
  switch (header.type) {
    case FrameType::result:
      return take_result(payload);
    case FrameType::alive:
      if (!may_answer(settings_, header)) return;
      if (header.count == kWantsWord) return send_word();
      if (const auto answer = sighting_for(settings_, header, header_of(FrameType::ask)))
        channel_->send_copy(*answer, {});
      return;
    case FrameType::ready:
      ready_ = true;
      return user_.lane_ready(settings_.lane);
    case FrameType::fault: {
      const auto report = decode_mismatch(payload);
      if (!report) return fail("a malformed fault report from aggregator " + aggregator());
      over_ = true;
      return user_.lane_fault(*report);
    }
    case FrameType::failed:
      told_ = decode_lane_loss(payload);
      return fail(told_->reason);
    default:
      return fail(text());
  }
}

void LaneLink::take_result(std::span<std::byte> payload) {
  const SequenceEntry& e = entry_slot(prefix_);
  TRIBUTARY_ASSERT(e.sequence == prefix_ && prefix_ < contributed_,
                   "the result of sequence {} comes where {} is next and {} were contributed", e.sequence, prefix_,
                   contributed_);
  TRIBUTARY_ASSERT(e.operation != nullptr, "the operation of sequence {} ended before its result", prefix_);
  Operation& operation = *e.operation;
  if (!payload.empty() && operation.result_of(e.segment) != payload.data()) {
    std::byte* const to = operation.result_of(e.segment);
    if (operation.direct) {
      direct_lane(operation.direct->device().get())->bring(e.sequence, to, payload.size());
    } else {
      std::memcpy(to, payload.data(), payload.size());
      if (payload.data() != staging_.at(e.sequence)) channel_->give_back(payload);
    }
  }
  if (operation.staged && !payload.empty())
    operation.staged->result_landed({operation.result_of(e.segment), payload.size()});
  const transport::TimePoint now = user_.lane_progress(operation);
  if (traced(settings_)) [[unlikely]]
    trace(settings_, SegmentMoment::came_down, e, payload.size(), now);
  window_.came(prefix_, now);
  bytes_.came(prefix_);
  ++prefix_;
  if (++operation.segments_done == operation.segments) user_.segments_finished(operation);
  pump(now);
}

void LaneLink::retain(const Operation& operation) {
  DirectLane* const direct = operation.direct ? direct_lane(operation.direct->device().get()) : nullptr;
  const std::uint64_t first = first_retained();
  for (std::uint64_t sequence = prefix_; sequence > first; --sequence) {
    SequenceEntry& e = entry_slot(sequence - 1);
    if (e.number < operation.number) break;
    if (e.operation != &operation) continue;
    const std::size_t bytes = e.segment.count * operation.element_bytes();
    const bool is_sent_form = sends_form(e) && !wants_result(e);  // forms_ keeps it
    if (bytes > 0 && (wants_result(e) || has_data(e)) && !is_sent_form) {
      const std::byte* const from = wants_result(e) ? operation.result_of(e.segment) : operation.input_of(e.segment);
      if (direct != nullptr) {
        direct->retain(e.sequence, from, bytes);
      } else {
        std::memcpy(retained(e.sequence), from, bytes);
      }
      e.retained_in = direct;
    }
    e.operation = nullptr;
  }
}

std::size_t LaneLink::bring_down(const std::function<void()>& done) {
  std::size_t copies = 0;
  for (std::uint64_t sequence = first_retained(); sequence < prefix_; ++sequence) {
    SequenceEntry& e = entry_slot(sequence);
    if (e.operation != nullptr || e.retained_in == nullptr) continue;
    e.retained_in->bring_down(sequence, retained(sequence), e.segment.count * size_of(e.signature.dtype),
                              [done, memory = retained_] { done(); });
    e.retained_in = nullptr;
    ++copies;
  }
  return copies;
}

const SequenceEntry* LaneLink::entry(std::uint64_t sequence) const noexcept {
  const SequenceEntry& e = entries_[sequence % entries_.size()];
  return e.sequence == sequence ? &e : nullptr;
}

std::span<const std::byte> LaneLink::input_bytes(const SequenceEntry& e) const noexcept {
  TRIBUTARY_ASSERT(has_data(e) && (e.operation != nullptr || is_retained(e)), "the input of sequence {} is gone",
                   e.sequence);
  if (sends_form(e)) return forms_.of(e.sequence);
  return {e.operation != nullptr ? e.operation->input_of(e.segment) : retained(e.sequence),
          e.segment.count * size_of(e.signature.dtype)};
}

const std::byte* LaneLink::result_bytes(const SequenceEntry& e) const noexcept {
  if (!wants_result(e)) return input_bytes(e).data();  // pattern one_to_all: the owner's input is the result
  TRIBUTARY_ASSERT(e.sequence < prefix_ && (e.operation != nullptr || is_retained(e)),
                   "the result of sequence {} is gone; {} have come", e.sequence, prefix_);
  return e.operation != nullptr ? e.operation->result_of(e.segment) : retained(e.sequence);
}

void LaneLink::fail(const std::string& reason) {
  if (over_) return;
  over_ = true;
  user_.lane_failed(settings_.lane, reason);
}

void LaneLink::on_closed(transport::Channel&, const Error& error) {
  // An aggregator refuses a join with a reason, except a join of another protocol version, which it cannot read.
  const bool unread = !ready_ && error.code == Errc::peer_gone;
  fail(coded(Reason::aggregator_lost,
             "aggregator " + aggregator() + " (" + to_string(descriptor_.entries[0].aggregator) +
                 "): " + error.message +
                 (unread ? " It had not answered this rank's join: it has ended, or runs another version of Tributary."
                         : "")));
}

void LaneLink::leave(transport::Duration limit) {
  if (over_ || !channel_ || channel_->closed()) return;
  over_ = true;
  channel_->send_copy(header_of(FrameType::leave), {});
  channel_->close_after_flush(limit);
}

void LaneLink::freeze() {
  over_ = true;
  if (channel_) channel_->close();
}

}  // namespace tributary::client
