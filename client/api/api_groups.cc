// The functions of tributary.h that make a communicator from another one.
#include <algorithm>
#include <cstring>
#include <expected>
#include <span>
#include <string>
#include <vector>

#include "client/api/guard.h"
#include "client/api/spare_meetings.h"

using namespace tributary;          // NOLINT(google-build-using-namespace): this file defines C names for it
using namespace tributary::client;  // NOLINT(google-build-using-namespace)

namespace {

/// One rank's arguments of a split.
struct Wish {
  std::int64_t color = 0;
  std::int64_t key = 0;
};

/// A value, or the status of an error that was reported already.
template <class Value>
using Reported = std::expected<Value, tributary_status>;

/// Returns the values of all ranks. Collective.
template <class Value>
Reported<std::vector<Value>> gathered(const Value& own, tributary_comm* comm, std::size_t ranks) {
  std::vector<Value> all(ranks);
  const tributary_status status = tributary_all_gather(&own, all.data(), sizeof own, TRIBUTARY_UINT8, comm, nullptr);
  if (status != TRIBUTARY_OK) return std::unexpected(status);
  return all;
}

std::size_t place_of(const Members& members, std::size_t rank) {
  return static_cast<std::size_t>(std::ranges::find(members, rank) - members.begin());
}

Members members_of(const std::vector<Wish>& wishes, std::int64_t color) {
  Members members;
  for (std::size_t rank = 0; rank < wishes.size(); ++rank) {
    if (wishes[rank].color == color) members.push_back(rank);
  }
  std::ranges::stable_sort(members, {}, [&](std::size_t rank) { return wishes[rank].key; });
  return members;
}

tributary_status failed(const char* function, const Comm& comm, const Error& error) {
  return report(error.code, std::string(function) + ": " + error.message, &comm.errors());
}

/// Opens a meeting on this rank. An error is reported.
Reported<OwnMeeting> open_own(const tributary_config* config) {
  tributary_unique_id id;
  if (const auto status = tributary_get_unique_id_config(&id, config); status != TRIBUTARY_OK)
    return std::unexpected(status);
  UniqueIdBytes bytes{};
  std::memcpy(bytes.data(), id.bytes, bytes.size());
  const auto decoded = decode_unique_id(bytes);
  if (!decoded) return std::unexpected(report(decoded.error()));
  return OwnMeeting(*decoded);
}

/// Opens a meeting in each of these places, and writes what the other ranks may know of it. After an error the offers
/// say that there are none.
tributary_status open_meetings(std::span<OwnMeeting> own, std::span<MeetingOffer> offers,
                               const tributary_config* config) {
  for (std::size_t i = 0; i < own.size(); ++i) {
    auto opened = open_own(config);
    if (!opened) return opened.error();
    own[i] = std::move(*opened);
    const auto offer = own[i].offer();
    if (!offer) return report(offer.error());
    offers[i] = *offer;
  }
  return TRIBUTARY_OK;
}

tributary_status without_offer(const char* function, const Comm& comm, std::size_t rank) {
  return failed(function, comm,
                {Errc::unreachable, "rank " + std::to_string(rank) + " could open no meeting; its error says why"});
}

tributary_status meet(const UniqueId& id, const Members& members, const Comm& old, const tributary_config* config,
                      tributary_comm** made) {
  const auto bytes = encode(id);
  if (!bytes) return report(bytes.error());
  tributary_unique_id unique;
  std::memcpy(unique.bytes, bytes->data(), bytes->size());
  return tributary_comm_init_rank_config(made, static_cast<int>(members.size()), &unique,
                                         static_cast<int>(place_of(members, old.rank())), config);
}

tributary_status split(const char* function, Comm& old, tributary_comm* handle, const Wish& wish,
                       const tributary_config* config, tributary_comm** made) {
  const auto wishes = gathered(wish, handle, old.size());
  if (!wishes) return wishes.error();
  const auto wrong = std::ranges::find_if(*wishes, [](const Wish& one) { return one.color < TRIBUTARY_SPLIT_NONE; });
  if (wrong != wishes->end()) {
    return failed(
        function, old,
        {Errc::bad_argument, "the color of rank " + std::to_string(wrong - wishes->begin()) + " is " +
                                 std::to_string(wrong->color) + "; it must be 0 or more, or TRIBUTARY_SPLIT_NONE"});
  }
  const bool member = wish.color != TRIBUTARY_SPLIT_NONE;
  const Members members = member ? members_of(*wishes, wish.color) : Members{};
  OwnMeeting own;
  MeetingOffer offer;
  const bool leads = member && members[0] == old.rank();
  const auto opened = leads ? open_meetings({&own, 1}, {&offer, 1}, config) : TRIBUTARY_OK;
  const auto offers = gathered(offer, handle, old.size());
  if (!offers) return offers.error();
  if (opened != TRIBUTARY_OK) return opened;
  if (!member) return TRIBUTARY_OK;
  if ((*offers)[members[0]].made == 0) return without_offer(function, old, members[0]);
  const auto id = id_of_members(old.next_groups().secret, "a split", (*offers)[members[0]], members, 0);
  if (!id) return failed(function, old, id.error());
  own.admit(id->secret);
  return meet(*id, members, old, config, made);
}

tributary_status prepare(const char* function, Comm& comm, tributary_comm* handle, const tributary_config* config) {
  SpareMeetings::Own own;
  SpareMeetings::Offers offer{};
  const auto opened = open_meetings(own, offer, config);
  auto offers = gathered(offer, handle, comm.size());
  if (!offers) return offers.error();
  if (opened != TRIBUTARY_OK) return opened;
  const auto none = std::ranges::find_if(*offers, [](const auto& one) { return one.back().made == 0; });
  if (none != offers->end()) return without_offer(function, comm, static_cast<std::size_t>(none - offers->begin()));
  comm.next_groups().spares = std::make_unique<SpareMeetings>(std::move(*offers), std::move(own), comm.rank());
  return TRIBUTARY_OK;
}

/// The id of a grow as rank 0 tells it to the old ranks.
struct ToldId {
  unsigned char sealed = 0;  // 0: rank 0 has no id to tell
  SealedId id{};
};

ToldId told_id(const Secret& old, const tributary_unique_id& id) {
  UniqueIdBytes bytes{};
  std::memcpy(bytes.data(), id.bytes, bytes.size());
  const auto sealed = seal_id(old, bytes);
  return sealed ? ToldId{.sealed = 1, .id = *sealed} : ToldId{};
}

Result<Members> survivors(const Comm& comm, const int* excluded, int count) {
  if (count < 0 || (count > 0 && excluded == nullptr))
    return fail(Errc::bad_argument, "the excluded ranks are NULL, or their count is below 0");
  std::vector<bool> gone(comm.size(), false);
  for (int i = 0; i < count; ++i) {
    if (excluded[i] < 0 || static_cast<std::uint32_t>(excluded[i]) >= comm.size())
      return fail(Errc::bad_argument,
                  "rank " + std::to_string(excluded[i]) + " is excluded, and there is no such rank");
    gone[static_cast<std::size_t>(excluded[i])] = true;
  }
  if (gone[comm.rank()])
    return fail(Errc::bad_argument, "this rank, " + std::to_string(comm.rank()) + ", is among the excluded ranks");
  Members members;
  for (std::size_t rank = 0; rank < gone.size(); ++rank) {
    if (!gone[rank]) members.push_back(rank);
  }
  return members;
}

}  // namespace

tributary_status tributary_comm_split(tributary_comm* comm, int color, int key, tributary_comm** newcomm,
                                      const tributary_config* config) {
  constexpr const char* function = "tributary_comm_split";
  return guarded(function, [&]() -> tributary_status {
    const auto old = live(function, comm);
    if (!old) return TRIBUTARY_ERROR_BAD_ARGUMENT;
    if (newcomm == nullptr) return failed(function, *old, {Errc::bad_argument, "newcomm is NULL"});
    *newcomm = nullptr;
    return split(function, *old, comm, {.color = color, .key = key}, config, newcomm);
  });
}

tributary_status tributary_comm_prepare_shrink(tributary_comm* comm, const tributary_config* config) {
  constexpr const char* function = "tributary_comm_prepare_shrink";
  return guarded(function, [&]() -> tributary_status {
    const auto old = live(function, comm);
    if (!old) return TRIBUTARY_ERROR_BAD_ARGUMENT;
    return prepare(function, *old, comm, config);
  });
}

tributary_status tributary_comm_shrink(tributary_comm* comm, const int* excluded, int excluded_count,
                                       tributary_comm** newcomm, const tributary_config* config) {
  constexpr const char* function = "tributary_comm_shrink";
  return guarded(function, [&]() -> tributary_status {
    const auto old = live(function, comm);
    if (!old) return TRIBUTARY_ERROR_BAD_ARGUMENT;
    if (newcomm == nullptr) return failed(function, *old, {Errc::bad_argument, "newcomm is NULL"});
    *newcomm = nullptr;
    const auto members = survivors(*old, excluded, excluded_count);
    if (!members) return failed(function, *old, members.error());
    NextGroups& next = old->next_groups();
    if (next.spares == nullptr) {
      return failed(function, *old,
                    {Errc::bad_argument,
                     "the ranks have no way to meet again: call tributary_comm_prepare_shrink while all of them are "
                     "there"});
    }
    const auto id = next.spares->next(next.secret, *members);
    if (!id) return failed(function, *old, id.error());
    const tributary_status status = meet(*id, *members, *old, config, newcomm);
    // A new communicator that could not be prepared is good nevertheless.
    if (status == TRIBUTARY_OK) static_cast<void>(tributary_comm_prepare_shrink(*newcomm, config));
    return status;
  });
}

tributary_status tributary_comm_grow(tributary_comm* comm, int nranks, const tributary_unique_id* id,
                                     tributary_comm** newcomm, const tributary_config* config) {
  constexpr const char* function = "tributary_comm_grow";
  return guarded(function, [&]() -> tributary_status {
    const auto old = live(function, comm);
    if (!old) return TRIBUTARY_ERROR_BAD_ARGUMENT;
    if (newcomm == nullptr) return failed(function, *old, {Errc::bad_argument, "newcomm is NULL"});
    *newcomm = nullptr;
    ToldId told;
    if (old->rank() == 0 && id != nullptr) told = told_id(old->next_groups().secret, *id);
    const tributary_status sent = tributary_broadcast(&told, &told, sizeof told, TRIBUTARY_UINT8, 0, comm, nullptr);
    if (sent != TRIBUTARY_OK) return sent;
    if (told.sealed == 0)
      return failed(function, *old, {Errc::bad_argument, "the id of rank 0 is NULL, or could not be sealed"});
    const auto opened = open_id(old->next_groups().secret, told.id);
    if (!opened) return failed(function, *old, opened.error());
    if (nranks < 0 || static_cast<std::uint32_t>(nranks) < old->size()) {
      return failed(function, *old,
                    {Errc::bad_argument, "nranks is " + std::to_string(nranks) + ", fewer than the " +
                                             std::to_string(old->size()) + " ranks of comm"});
    }
    tributary_unique_id unique;
    std::memcpy(unique.bytes, opened->data(), opened->size());
    return tributary_comm_init_rank_config(newcomm, nranks, &unique, static_cast<int>(old->rank()), config);
  });
}
