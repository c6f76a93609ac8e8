#include "client/cli/perf/meet.h"

#include <unistd.h>

#include <cstring>

#include "client/cli/perf/bench.h"
#include "client/cli/perf/id_exchange.h"

namespace tributary::cli {
namespace {

std::string without_blanks(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) <= ' ') c = '_';
  }
  return text.substr(0, 128);
}

Status share_id(const Launch& launch, const MeetWish& wish, tributary_unique_id& id) {
  static_assert(sizeof id.bytes == sizeof(IdBytes));
  IdBytes bytes{};
  if (launch.rank == 0) {
    if (const auto s = tributary_get_unique_id(&id); s != TRIBUTARY_OK) return std::unexpected(error_of(s, nullptr));
    std::memcpy(bytes.data(), id.bytes, bytes.size());
  }
  if (launch.ranks == 1) return {};
  const auto limit = std::chrono::milliseconds(static_cast<std::int64_t>(wish.seconds * 1000));
  if (!wish.id_file.empty() && launch.rank == 0) return write_id_file(bytes, wish.id_file);
  if (wish.id_file.empty() && launch.master_host.empty()) {
    return fail(Errc::bad_config,
                "rank 0's host is not known: pass MASTER_ADDR (and MASTER_PORT) to every rank, "
                "or use --id-file with a file that all of them share");
  }
  const IdMeeting meeting{.rank = launch.rank,
                          .ranks = launch.ranks,
                          .host = launch.master_host,
                          .port = launch.master_port,
                          .job = without_blanks(launch.job),
                          .limit = limit};
  if (launch.rank == 0) return hand_out_id(bytes, meeting);
  const auto got = wish.id_file.empty() ? fetch_id(meeting) : read_id_file(wish.id_file, limit);
  if (!got) return std::unexpected(got.error());
  std::memcpy(id.bytes, got->data(), got->size());
  return {};
}

}  // namespace

Result<OwnedComm> meet(const Launch& launch, const MeetWish& wish, const tributary_config& config) {
  tributary_unique_id id{};
  if (auto ok = share_id(launch, wish, id); !ok) return std::unexpected(ok.error());
  tributary_comm* comm = nullptr;
  const auto status = tributary_comm_init_rank_config(&comm, static_cast<int>(launch.ranks), &id,
                                                      static_cast<int>(launch.rank), &config);
  if (launch.rank == 0 && !wish.id_file.empty()) unlink(wish.id_file.c_str());  // every rank has read it
  if (status != TRIBUTARY_OK) return std::unexpected(error_of(status, nullptr));
  return OwnedComm(comm);
}

}  // namespace tributary::cli
