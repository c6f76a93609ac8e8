// The classes of an aggregator's links by party, on virtual time.
#include "aggregator/worker/link_classes.h"

#include <gmock/gmock.h>

#include <set>

namespace tributary::aggregator {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Change = LinkClasses::Change;
using Time = std::chrono::steady_clock::time_point;

constexpr Time kBegin{std::chrono::hours(1)};
constexpr Time kLater = kBegin + kClassKept;

TEST(LinkClasses, APartyHasOneClassWhateverTheNumberOfItsPlaces) {
  const auto classes = std::make_shared<LinkClasses>();
  const auto one = classes->enter("physics", 4), other = classes->enter("physics", 4);
  const auto neighbour = classes->enter("chemistry", 1);
  EXPECT_EQ(one->priority(), kLinkFirst);
  EXPECT_EQ(other->priority(), one->priority());
  EXPECT_NE(neighbour->priority(), one->priority());
  EXPECT_THAT(classes->take_changes(kBegin),
              UnorderedElementsAre(Change{kLinkFirst, 4, "physics"}, Change{kLinkFirst + 1, 1, "chemistry"}));
  EXPECT_THAT(classes->take_changes(kBegin), IsEmpty());
  EXPECT_EQ(classes->counts().classes, 2U);
  EXPECT_EQ(classes->counts().sharing, 0U);
}

TEST(LinkClasses, AWeightThatChangesChangesTheClass) {
  const auto classes = std::make_shared<LinkClasses>();
  const auto before = classes->enter("physics", 1);
  (void)classes->take_changes(kBegin);
  const auto after = classes->enter("physics", 8);
  EXPECT_EQ(after->priority(), before->priority());
  EXPECT_THAT(classes->take_changes(kBegin), UnorderedElementsAre(Change{kLinkFirst, 8, "physics"}));
}

TEST(LinkClasses, AClassStaysForAWhileAfterItsLastPlace) {
  const auto classes = std::make_shared<LinkClasses>();
  (void)classes->enter("physics", 1);
  EXPECT_THAT(classes->take_changes(kBegin), UnorderedElementsAre(Change{kLinkFirst, 1, "physics"}));
  EXPECT_THAT(classes->take_changes(kLater - std::chrono::seconds(1)), IsEmpty());
  EXPECT_EQ(classes->enter("physics", 1)->priority(), kLinkFirst) << "and is used again";
  EXPECT_THAT(classes->take_changes(kLater), IsEmpty()) << "the time begins anew";
  EXPECT_THAT(classes->take_changes(kLater + kClassKept), UnorderedElementsAre(Change{kLinkFirst, 0, ""}));
  EXPECT_EQ(classes->counts().classes, 0U);
}

TEST(LinkClasses, AClassThatWasGivenBackIsTheLastToBeUsedAgain) {
  const auto classes = std::make_shared<LinkClasses>(3);
  (void)classes->enter("a", 1);
  (void)classes->take_changes(kBegin);
  (void)classes->take_changes(kLater);
  std::vector<std::shared_ptr<LinkClasses::Place>> places;
  for (const char* party : {"b", "c", "d"}) places.push_back(classes->enter(party, 1));
  EXPECT_EQ(places[0]->priority(), kLinkFirst + 1);
  EXPECT_EQ(places[2]->priority(), kLinkFirst);
}

TEST(LinkClasses, WithoutAFreeClassPartiesTakeOneThatNobodyUsesOrShare) {
  const auto classes = std::make_shared<LinkClasses>(2);
  const auto a = classes->enter("a", 3);
  auto b = classes->enter("b", 2);
  const auto shared = classes->enter("c", 16);
  EXPECT_TRUE(shared->priority() == a->priority() || shared->priority() == b->priority());
  EXPECT_EQ(classes->counts().classes, 2U);
  EXPECT_EQ(classes->counts().sharing, 1U);
  EXPECT_THAT(classes->all(), UnorderedElementsAre(Change{kLinkFirst, 3, "a"}, Change{kLinkFirst + 1, 2, "b"}))
      << "the weight is that of the party that was there first";

  const auto alone = std::make_shared<LinkClasses>(1);
  (void)alone->enter("a", 1);
  const auto next = alone->enter("b", 2);
  EXPECT_EQ(next->priority(), kLinkFirst);
  EXPECT_EQ(alone->counts().sharing, 0U) << "a has left, and b has the class for itself";
  EXPECT_THAT(alone->take_changes(kBegin), UnorderedElementsAre(Change{kLinkFirst, 2, "b"}));
}

TEST(LinkClasses, HandlesAreDistinctAndWithinTheQdisc) {
  const auto classes = std::make_shared<LinkClasses>();
  std::vector<std::shared_ptr<LinkClasses::Place>> places;
  std::set<std::uint32_t> handles{kLinkQdisc, kLinkWhole, kLinkDefault};
  for (std::uint32_t i = 0; i < kLinkClassesMax; ++i) {
    places.push_back(classes->enter("tenant-" + std::to_string(i), 1));
    EXPECT_EQ(places.back()->priority() >> 16U, kLinkQdisc >> 16U);
    EXPECT_TRUE(handles.insert(places.back()->priority()).second) << "two parties have one class";
  }
}

}  // namespace
}  // namespace tributary::aggregator
