// The functions of tributary.h that make a communicator from another one.
#include <algorithm>
#include <cstring>
#include <expected>
#include <vector>

#include "client/api/guard.h"
#include "client/api/spare_meetings.h"

using namespace tributary;          // NOLINT(google-build-using-namespace): this file defines C names for it
using namespace tributary::client;  // NOLINT(google-build-using-namespace)

namespace {

/// The unique id that a rank may have made for others.
struct OfferedId {
  unsigned char made = 0;
  tributary_unique_id id{};
};

/// One rank's arguments of a split.
struct Wish {
  std::int64_t color = 0;
  std::int64_t key = 0;
};

/// The ranks of a new communicator, as ranks of the old one, in the order of their new ranks.
using Members = std::vector<std::size_t>;

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

/// Makes an id on this rank if it leads one of the new communicators, and gathers the ids of all ranks. Collective.
Reported<std::vector<OfferedId>> exchange_offers(bool makes_one, const tributary_config* config, tributary_comm* comm,
                                                 std::size_t ranks) {
  OfferedId own;
  const tributary_status made = makes_one ? tributary_get_unique_id_config(&own.id, config) : TRIBUTARY_OK;
  own.made = makes_one && made == TRIBUTARY_OK ? 1 : 0;
  auto offers = gathered(own, comm, ranks);
  if (!offers && own.made != 0) tributary_release_unique_id(&own.id);
  if (offers && made != TRIBUTARY_OK) return std::unexpected(made);
  return offers;
}

tributary_status failed(const char* function, const Comm& comm, const Error& error) {
  return report(error.code, std::string(function) + ": " + error.message, &comm.errors());
}

tributary_status split(const char* function, const Comm& old, tributary_comm* handle, const Wish& wish,
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
  const auto offers = exchange_offers(member && members[0] == old.rank(), config, handle, old.size());
  if (!offers) return offers.error();
  if (!member) return TRIBUTARY_OK;
  const OfferedId& offer = (*offers)[members[0]];
  if (offer.made == 0) {
    return failed(
        function, old,
        {Errc::unreachable, "rank " + std::to_string(members[0]) + " could make no unique id; its error says why"});
  }
  return tributary_comm_init_rank_config(made, static_cast<int>(members.size()), &offer.id,
                                         static_cast<int>(place_of(members, old.rank())), config);
}

tributary_status prepare(const char* function, Comm& comm, tributary_comm* handle, const tributary_config* config) {
  const auto offers = exchange_offers(true, config, handle, comm.size());
  if (!offers) return offers.error();
  std::vector<UniqueIdBytes> ids(offers->size());
  for (std::size_t rank = 0; rank < ids.size(); ++rank)
    std::memcpy(ids[rank].data(), (*offers)[rank].id.bytes, ids[rank].size());
  comm.set_spare_meetings(std::make_unique<SpareMeetings>(std::move(ids), comm.rank()));
  const auto none = std::ranges::find(*offers, 0, &OfferedId::made);
  if (none == offers->end()) return TRIBUTARY_OK;
  comm.set_spare_meetings(nullptr);
  return failed(function, comm,
                {Errc::unreachable,
                 "rank " + std::to_string(none - offers->begin()) + " could make no unique id; its error says why"});
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
    const auto meetings = old->take_spare_meetings();
    if (meetings == nullptr) {
      return failed(function, *old,
                    {Errc::bad_argument,
                     "the ranks have no way to meet again: call tributary_comm_prepare_shrink while all of them are "
                     "there, and shrink a communicator only once"});
    }
    tributary_unique_id id;
    std::memcpy(id.bytes, meetings->of(members->front()).data(), sizeof id.bytes);
    const tributary_status status = tributary_comm_init_rank_config(
        newcomm, static_cast<int>(members->size()), &id, static_cast<int>(place_of(*members, old->rank())), config);
    if (status != TRIBUTARY_OK) return status;
    const tributary_status prepared = tributary_comm_prepare_shrink(*newcomm, config);
    if (prepared == TRIBUTARY_OK) return TRIBUTARY_OK;
    tributary_comm_abort(*newcomm);
    *newcomm = nullptr;
    return prepared;
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
    OfferedId offer;
    if (old->rank() == 0 && id != nullptr) offer = {.made = 1, .id = *id};
    const tributary_status told = tributary_broadcast(&offer, &offer, sizeof offer, TRIBUTARY_UINT8, 0, comm, nullptr);
    if (told != TRIBUTARY_OK) return told;
    if (offer.made == 0) return failed(function, *old, {Errc::bad_argument, "the id of rank 0 is NULL"});
    if (nranks < 0 || static_cast<std::uint32_t>(nranks) < old->size()) {
      return failed(function, *old,
                    {Errc::bad_argument, "nranks is " + std::to_string(nranks) + ", fewer than the " +
                                             std::to_string(old->size()) + " ranks of comm"});
    }
    return tributary_comm_init_rank_config(newcomm, nranks, &offer.id, static_cast<int>(old->rank()), config);
  });
}
