#include "tree-manager/daemon/archive_command.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <utility>

#include "service-kit/settings_file.h"
#include "tree-manager/daemon/parts.h"
#include "tree-manager/identity/key_file.h"
#include "tree-manager/service/clock.h"
#include "tree-manager/store/archive.h"
#include "tree-manager/store/etcd/etcd_election.h"
#include "tree-manager/store/etcd/etcd_store.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds kImportLease{60};
constexpr std::chrono::seconds kRenewEvery{10};
constexpr std::chrono::seconds kCallLimit{10};
constexpr std::size_t kArchiveBytesMax = std::size_t{4} << 30;

Result<std::unique_ptr<Store>> store_to_read(const Settings& settings) {
  if (settings.store.empty()) return open_sqlite_to_read(settings.path_in_state("manager.db"));
  auto etcd = etcd_settings(settings);
  if (!etcd) return std::unexpected(etcd.error());
  auto store = open_etcd_to_read(*etcd, {});
  if (!store) return std::unexpected(store.error());
  return std::unique_ptr<Store>(std::move(*store));
}

std::string counts_of(const Archive& archive) {
  return std::to_string(archive.records.groups.size()) + " groups, " +
         std::to_string(archive.records.aggregators.size()) + " aggregators, fence " + std::to_string(archive.fence);
}

Status import_into_sqlite(const Settings& settings, const Archive& archive, bool replace) {
  if (auto ok = claim_directory(settings.state_directory); !ok) return ok;
  const auto store = open_sqlite({.path = settings.path_in_state("manager.db"),
                                  .bytes_max = settings.database_bytes_max,
                                  .fence_min = static_cast<std::uint64_t>(SystemClock().unix_milliseconds())});
  if (!store) return std::unexpected(store.error());
  return restore(**store, archive, replace, [] { return Status{}; });
}

/// Holds the lead while the import runs, so that no manager can lead.
Status import_into_etcd(const Settings& settings, const Archive& archive, bool replace) {
  const auto etcd = etcd_settings(settings);
  if (!etcd) return std::unexpected(etcd.error());
  const auto election = EtcdElection::create(*etcd, "", "import-" + std::to_string(::getpid()), kCallLimit);
  if (!election) return std::unexpected(election.error());
  const auto lease = (*election)->make_lease(kImportLease);
  if (!lease) return std::unexpected(lease.error());
  const auto work = [&]() -> Status {
    const auto term = (*election)->stand(*lease);
    if (!term) return std::unexpected(term.error());
    if (!*term) {
      const auto leader = (*election)->look();
      const std::string who =
          leader && *leader && !(*leader)->url.empty() ? "the manager at " + (*leader)->url : "another process";
      return fail(Errc::retry, who + " leads on this store; stop all its managers, and try again");
    }
    const auto store =
        open_etcd(*etcd, {.fence_base_min = static_cast<std::uint64_t>(SystemClock().unix_milliseconds())}, **term);
    if (!store) return std::unexpected(store.error());
    auto renewed_at = std::chrono::steady_clock::now();
    return restore(**store, archive, replace, [&]() -> Status {
      if (std::chrono::steady_clock::now() - renewed_at < kRenewEvery) return {};
      renewed_at = std::chrono::steady_clock::now();
      const auto alive = (*election)->renew(*lease);
      return alive ? Status{} : std::unexpected(alive.error());
    });
  };
  const Status done = work();
  (*election)->resign(*lease);
  return done;
}

}  // namespace

Status export_archive(const Settings& settings, const std::string& file) {
  const auto store = store_to_read(settings);
  if (!store) return std::unexpected(store.error());
  const auto archive = read_archive(**store, SystemClock().unix_seconds());
  if (!archive) return std::unexpected(archive.error());
  if (auto ok = write_private_file(file, to_text(*archive)); !ok) return ok;
  std::printf("tributary-manager: wrote %s: %s\n", file.c_str(), counts_of(*archive).c_str());
  return {};
}

Status import_archive(const Settings& settings, const std::string& file, bool replace) {
  const auto text = service::read_file(file, kArchiveBytesMax);
  if (!text) return fail(Errc::bad_config, "the archive " + file + " cannot be read: " + text.error().message);
  const auto archive = archive_from_text(*text);
  if (!archive) return fail(archive.error().code, file + ": " + archive.error().message);
  if (auto ok = settings.store.empty() ? import_into_sqlite(settings, *archive, replace)
                                       : import_into_etcd(settings, *archive, replace);
      !ok) {
    return ok;
  }
  std::printf("tributary-manager: took in %s: %s\n", file.c_str(), counts_of(*archive).c_str());
  return {};
}

}  // namespace tributary::manager
