#include "tributary/protocol/reason.h"

#include <gmock/gmock.h>

#include <fstream>
#include <set>
#include <sstream>
#include <vector>

#include "tributary/protocol/reason_counts.h"

namespace tributary {
namespace {

using testing::IsSupersetOf;

/// The codes that users may have written into their programs and alarms. New codes are added, and none is removed.
const std::vector<std::string_view> kReleased{
    "aggregator-back",
    "aggregator-hangs",
    "aggregator-lost",
    "aggregator-silent",
    "capacity-changed",
    "changed-records",
    "collnet-off",
    "draining",
    "forming-timed-out",
    "group-forgotten",
    "join-contradicts",
    "join-late",
    "join-malformed",
    "join-security",
    "join-token-elsewhere",
    "join-token-expired",
    "join-token-forged",
    "joined-already",
    "lane-broken",
    "lane-ended",
    "manager-busy",
    "manager-failed",
    "manager-late",
    "manager-timed-out",
    "manager-unreachable",
    "moved-to-better-trees",
    "no-key",
    "no-leader",
    "no-manager",
    "no-memory",
    "no-shared-memory",
    "no-token",
    "no-tree",
    "no-way-to-trees",
    "not-allowed",
    "not-in-topology",
    "old-leadership",
    "one-host",
    "one-rank",
    "other-address",
    "path-is-fallback",
    "preempted",
    "quota-groups",
    "quota-lanes",
    "quota-memory",
    "quota-rate",
    "rank-gone",
    "ranks-are-faster",
    "ranks-disagree",
    "rdma-connection-lost",
    "rdma-device-gone",
    "reservation-began",
    "reserved",
    "security",
    "store-blocked",
    "tenant-limit",
    "token-expired",
    "token-not-yet-valid",
    "token-revoked",
    "too-many-aggregators",
    "too-many-groups",
    "too-many-requests",
    "tree-is-faster",
    "trees-forming",
    "trees-not-chosen",
    "tuning-off",
    "tuning-rule",
    "unequal-security",
    "unknown-certificate",
    "waiting",
    "wrong-token",
};

std::set<std::string_view> codes() {
  std::set<std::string_view> all;
  for (const ReasonRow& row : kReasons) all.insert(row.code);
  return all;
}

TEST(Reasons, HaveCodesThatDifferAndConsistOfSmallWords) {
  EXPECT_EQ(codes().size(), std::size(kReasons));
  for (const ReasonRow& row : kReasons) {
    EXPECT_THAT(std::string(row.code), testing::MatchesRegex("[a-z]+(-[a-z]+)*"));
    EXPECT_LE(row.code.size(), 32U) << row.code;
    EXPECT_EQ(reason_of(row.code), row.reason) << row.code;
    EXPECT_EQ(&row_of(row.reason), &row) << row.code;
    EXPECT_FALSE(row.meaning.empty()) << row.code;
    EXPECT_FALSE(row.meaning.ends_with('.') || row.remedy.ends_with('.')) << row.code;
  }
  EXPECT_EQ(reason_of("no-such-code"), Reason::none);
  EXPECT_EQ(reason_of(""), Reason::none);
}

TEST(Reasons, KeepEveryCodeThatWasReleased) {
  EXPECT_THAT(codes(), IsSupersetOf(kReleased));
  EXPECT_EQ(kReleased.size(), std::size(kReasons)) << "a new code is in the list, too";
}

/// Returns the rows of the table of codes, without the marks of code.
std::vector<std::string> rows_of_document() {
  std::ifstream file(TRIBUTARY_MESSAGES_DOCUMENT);
  std::vector<std::string> rows;
  std::string line;
  while (std::getline(file, line) && line != "## Codes of reasons") {
  }
  while (std::getline(file, line) && !line.starts_with("## ")) {
    if (!line.starts_with("| `")) continue;
    std::erase(line, '`');
    rows.push_back(line);
  }
  return rows;
}

TEST(Reasons, StandInTheDocument) {
  std::vector<std::string> rows;
  std::string table;
  for (const ReasonRow& row : kReasons) {
    std::ostringstream text;
    text << "| " << row.code << " | " << to_string(row.kind) << " | " << row.meaning << " |"
         << (row.remedy.empty() ? "" : " ") << row.remedy << " |";
    rows.push_back(text.str());
    table += text.str() + "\n";
  }
  EXPECT_EQ(rows_of_document(), rows) << "the table of docs/operations/messages.md should be\n" << table;
}

TEST(ACode, StandsAtTheEndOfItsSentence) {
  EXPECT_EQ(coded(Reason::no_token, "no token was given"), "no token was given [no-token]");
  EXPECT_EQ(coded(Reason::no_tree, "no token was given [no-token]"), "no token was given [no-token]")
      << "the first code is the exact one";
  EXPECT_EQ(coded(Reason::no_token, ""), "") << "no sentence, no reason";
  EXPECT_EQ(coded(Reason::none, "all is well"), "all is well");
  EXPECT_EQ(coded("a-new-code", "a sentence"), "a sentence [a-new-code]") << "of a newer process";
  EXPECT_EQ(coded("No Code", "a sentence"), "a sentence");
  EXPECT_EQ(fail(Errc::denied, Reason::no_key, "no key is known").error().message, "no key is known [no-key]");
}

TEST(ACode, IsTakenFromItsSentence) {
  const CodedText text = split_code("no token was given [no-token]");
  EXPECT_EQ(text.reason, Reason::no_token);
  EXPECT_EQ(text.sentence, "no token was given");
  for (const char* other : {"", "no token was given", "[no-token]", "no [no-token] was given", "a list [0]",
                            "of a newer process [a-new-code]", "no-token]", " [no-token] "}) {
    EXPECT_EQ(split_code(other).reason, Reason::none) << other;
    EXPECT_EQ(split_code(other).sentence, other);
  }
}

TEST(ACode, StaysWhenTheSentenceIsCut) {
  EXPECT_EQ(cut_before_code("a long sentence [no-token]", 17), "a long [no-token]");
  EXPECT_EQ(cut_before_code("a long sentence [no-token]", 26), "a long sentence [no-token]");
  EXPECT_EQ(cut_before_code("a long sentence", 6), "a long");
  EXPECT_EQ(cut_before_code("a long sentence [no-token]", 5), "a lon") << "no room for the code";
}

TEST(ReasonCounts, ShowOnlyWhatHasArisen) {
  ReasonCounts counts;
  counts.add(Reason::no_token);
  counts.add(Reason::none);
  counts.add(Reason::no_token);
  ReasonNumbers numbers = counts.read();
  ReasonNumbers more;
  more.add(Reason::draining, 3);
  numbers += more;
  std::vector<std::pair<std::string_view, std::uint64_t>> seen;
  numbers.for_each([&](std::string_view code, std::uint64_t count) { seen.emplace_back(code, count); });
  using Pair = std::pair<std::string_view, std::uint64_t>;
  EXPECT_THAT(seen, testing::ElementsAre(Pair{"draining", 3}, Pair{"no-token", 2}));
}

}  // namespace
}  // namespace tributary
