#include "client/operation/own_troubles.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

namespace tributary::client {
namespace {

using transport::Duration;

constexpr std::uint64_t kSegmentsMin = 30;  // with fewer segments, a part of them says little
constexpr std::uint64_t kSentAgainMin = 3;  // a single loss says little, too

/// Returns the text of a file of the kernel, whose size is not known before; empty if it cannot be read. Reads kTextMax
/// at most: a host with more than 8,000 network devices has more.
std::string text_of(const std::string& path) {
  constexpr std::size_t kTextMax = 1U << 20, kStep = 4096;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::string text;
  for (std::size_t length = 0; length < kTextMax;) {
    text.resize(length + kStep);
    const ssize_t bytes = ::read(file, text.data() + length, kStep);
    length += bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
    text.resize(length);
    if (bytes <= 0) break;
  }
  ::close(file);
  return text;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

std::optional<std::uint64_t> number_in(std::string_view word) {
  std::uint64_t number = 0;
  const auto end = std::from_chars(word.data(), word.data() + word.size(), number);
  return end.ec == std::errc() ? std::optional(number) : std::nullopt;
}

/// Returns the lines that begin with this word.
std::vector<std::vector<std::string_view>> lines_of(std::string_view text, std::string_view word) {
  std::vector<std::vector<std::string_view>> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (auto words = words_of(text.substr(0, end)); !words.empty() && words.front() == word)
      lines.push_back(std::move(words));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::uint8_t percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<std::uint8_t>(std::min<std::uint64_t>(part * 100 / whole, 100));
}

/// Returns the sum of the errors in sending and receiving, over all network devices. Each line after the first two is
/// "NAME: " and eight counts of received data, then eight of sent data; the third of each eight are the errors.
std::optional<std::uint64_t> device_errors_in(const std::string& file) {
  constexpr std::size_t kCounts = 16, kReceived = 2, kSent = 10;
  const std::string text = text_of(file);
  std::optional<std::uint64_t> sum;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const auto counts = words_of(line.substr(colon + 1));
    if (counts.size() < kCounts) continue;
    sum = sum.value_or(0) + number_in(counts[kReceived]).value_or(0) + number_in(counts[kSent]).value_or(0);
  }
  return sum;
}

}  // namespace

std::optional<Duration> processor_wait(const std::string& schedstat) {
  const std::string text = text_of(schedstat);  // "ran waited slices", in nanoseconds
  const auto words = words_of(text);
  if (words.size() < 2) return std::nullopt;
  const auto waited = number_in(words[1]);
  if (!waited) return std::nullopt;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(*waited));
}

/// Reads the two lines "Tcp: NAME ..." and "Tcp: NUMBER ...".
std::optional<OwnTroubles::Segments> OwnTroubles::segments_in(const std::string& file) {
  const std::string text = text_of(file);
  const auto lines = lines_of(text, "Tcp:");
  if (lines.size() != 2 || lines[0].size() != lines[1].size()) return std::nullopt;
  const auto value = [&lines](std::string_view name) -> std::optional<std::uint64_t> {
    const auto at = std::ranges::find(lines[0], name);
    return at == lines[0].end() ? std::nullopt : number_in(lines[1][static_cast<std::size_t>(at - lines[0].begin())]);
  };
  const auto sent = value("OutSegs"), again = value("RetransSegs");
  if (!sent || !again) return std::nullopt;
  return Segments{.sent = *sent, .sent_again = *again};
}

OwnTroubles::Counters OwnTroubles::read() const {
  Counters counters{.main_wait = processor_wait(files_.main_thread),
                    .this_wait = processor_wait(files_.this_thread),
                    .this_thread = ::gettid(),
                    .segments = segments_in(files_.tcp),
                    .device_errors = device_errors_in(files_.devices)};
  if (!packets_) return counters;
  const Segments packets = packets_(), tcp = counters.segments.value_or(Segments{});
  counters.segments = {.sent = tcp.sent + packets.sent, .sent_again = tcp.sent_again + packets.sent_again};
  return counters;
}

RankTroubles OwnTroubles::between(const Counters& before, const Counters& after, Duration time) {
  const auto waited = [time](const auto& from, const auto& to) -> std::uint8_t {
    if (!from || !to || *to <= *from) return 0;
    return percent(static_cast<std::uint64_t>((*to - *from).count()), static_cast<std::uint64_t>(time.count()));
  };
  RankTroubles found{.processor_wait = waited(before.main_wait, after.main_wait)};
  if (before.this_thread == after.this_thread)
    found.processor_wait = std::max(found.processor_wait, waited(before.this_wait, after.this_wait));
  if (before.device_errors && after.device_errors && *after.device_errors > *before.device_errors) {
    const std::uint64_t errors = *after.device_errors - *before.device_errors;
    found.device_errors = static_cast<std::uint8_t>(std::min<std::uint64_t>(errors, 100));
  }
  if (!before.segments || !after.segments || after.segments->sent_again < before.segments->sent_again) return found;
  const std::uint64_t sent = after.segments->sent - std::min(after.segments->sent, before.segments->sent);
  const std::uint64_t again = after.segments->sent_again - before.segments->sent_again;
  if (sent + again >= kSegmentsMin && again >= kSentAgainMin) found.sent_again = percent(again, sent + again);
  return found;
}

bool OwnTroubles::look(transport::TimePoint now) {
  if (read_at_ && now - *read_at_ < kPeriod) return false;
  const Counters counters = read();
  if (read_at_) last_ = {between(counters_, counters, now - *read_at_), last_[0]};
  counters_ = counters;
  read_at_ = now;
  const bool troubled = current().any();
  return std::exchange(told_, troubled) || troubled;
}

bool OwnTroubles::may_answer(Question question, transport::TimePoint now) noexcept {
  if (now - answers_since_ >= std::chrono::seconds(1)) {
    answers_since_ = now;
    answers_ = {};
  }
  return ++answers_[static_cast<std::size_t>(question)] <= kAnswersMax;
}

RankTroubles OwnTroubles::until(transport::TimePoint now) {
  RankTroubles found = current();
  if (!read_at_ || now - *read_at_ < kPeriod / 2) return found;
  if (!until_at_ || now - *until_at_ >= kPeriod / 2) {
    since_ = between(counters_, read(), now - *read_at_);
    until_at_ = now;
  }
  found.processor_wait = std::max(found.processor_wait, since_.processor_wait);
  found.sent_again = std::max(found.sent_again, since_.sent_again);
  found.device_errors = std::max(found.device_errors, since_.device_errors);
  return found;
}

RankTroubles OwnTroubles::current() const noexcept {
  return {.processor_wait = std::max(last_[0].processor_wait, last_[1].processor_wait),
          .sent_again = std::max(last_[0].sent_again, last_[1].sent_again),
          .device_errors = static_cast<std::uint8_t>(std::min(last_[0].device_errors + last_[1].device_errors, 100))};
}

}  // namespace tributary::client
