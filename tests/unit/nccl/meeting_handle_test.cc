// Every rank of a communicator reads the same handles: the decision must depend only on the handles.
#include "client/plugins/nccl/collective/meeting_handle.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace tributary::nccl {
namespace {

int first_refusal(const std::vector<Offer>& offers) {
  std::vector<std::array<std::byte, abi::kHandleBytes>> handles(offers.size());
  std::vector<void*> list;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    tributary_unique_id id{};
    id.bytes[0] = 7;
    void* const to = handles[rank].data();
    offers[rank] == Offer::group ? MeetingHandle::write(to, id) : MeetingHandle::write(to, offers[rank]);
    EXPECT_EQ(MeetingHandle::read(to), offers[rank]);
    list.push_back(to);
  }
  return MeetingHandle::first_refusal(list);
}

TEST(MeetingHandle, MeetsWhereRankZeroHasAServiceAndAllCanTakePart) {
  using enum Offer;
  EXPECT_EQ(first_refusal({group, group, group}), -1);
  EXPECT_EQ(first_refusal({group, no_service, no_service}), -1) << "only rank 0 asks for trees";
  EXPECT_EQ(first_refusal({no_service, group, group}), 0);
  EXPECT_EQ(first_refusal({group, group, no_id}), 2);
  EXPECT_EQ(first_refusal({group, no_service, no_id}), 2);
}

TEST(MeetingHandle, AnUnknownAnswerCountsAsARefusal) {
  std::array<std::byte, abi::kHandleBytes> handle{};
  MeetingHandle::write(handle.data(), static_cast<Offer>(99));
  EXPECT_EQ(MeetingHandle::read(handle.data()), Offer::no_id);
}

}  // namespace
}  // namespace tributary::nccl
