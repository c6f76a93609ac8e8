#include "tree-manager/settings/settings.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "service-kit/settings_table.h"
#include "tree-manager/store/etcd/etcd_url.h"
#include "tributary/protocol/frame.h"

namespace tributary::manager {
namespace {

using Field = service::SettingField<Settings>;
using namespace service::field;

Field path(std::string_view key, std::string Settings::* member, const std::string& allowed, std::string_view help) {
  return text(key, member, allowed, help, [](std::string_view) -> Status { return {}; });
}

/// A time in whole seconds.
Field seconds(std::string_view key, std::chrono::milliseconds Settings::* member, std::chrono::seconds low,
              std::chrono::seconds high, std::string_view help) {
  Field row = duration(key, member, low, high, help);
  std::string allowed = row.allowed + ", in whole seconds";
  return checked(std::move(row), std::move(allowed), [member](const Settings& settings) -> Status {
    if ((settings.*member).count() % 1000 != 0) return wrong("it has a part of a second");
    return {};
  });
}

Field segment_bytes() {
  Field row = bytes("segment_bytes", &Settings::segment_bytes, 0, kSegmentBytesMax,
                    "The size of a segment, unless a job asks for another. 0B: the manager chooses by the slowest of "
                    "the ranks' links.");
  std::string allowed = "0B, or a multiple of 64B from " + service::bytes_text(kSegmentBytesMin) + " to " +
                        service::bytes_text(kSegmentBytesMax);
  return checked(std::move(row), std::move(allowed), [](const Settings& settings) -> Status {
    if (settings.segment_bytes % 64 != 0) return wrong("it is no multiple of 64B");
    if (settings.segment_bytes != 0 && settings.segment_bytes < kSegmentBytesMin)
      return wrong("it is below " + service::bytes_text(kSegmentBytesMin));
    return {};
  });
}

/// A path of TLS's files. It is not made by text(), because the member lies in a struct of its own.
Field tls_path(std::string_view key, service::TlsFiles Settings::* files, std::string service::TlsFiles::* member,
               std::string_view help) {
  return {.key = key,
          .allowed = "a path, or empty",
          .help = help,
          .read = [files, member](Settings& settings, std::string_view written) -> Status {
            settings.*files.*member = std::string(written);
            return {};
          },
          .write = [files, member](const Settings& settings) { return settings.*files.*member; }};
}

std::vector<Field> tls_fields() {
  using service::TlsFiles;
  return {
      tls_path("tls_cert", &Settings::tls, &TlsFiles::cert,
               "The manager's certificate, and the certificates of the CAs below the root (PEM). With it, the manager "
               "speaks only HTTPS. A file of TLS that changes is read again."),
      tls_path("tls_key", &Settings::tls, &TlsFiles::key,
               "The private key of tls_cert (PEM), which other users must not be able to read."),
      tls_path("tls_ca", &Settings::tls, &TlsFiles::ca,
               "The CAs of client certificates (PEM). Empty: the manager asks callers for no certificate."),
      tls_path("tls_crl", &Settings::tls, &TlsFiles::crl,
               "Revocation lists of those CAs (PEM). With it, each CA that issues client certificates needs a list."),
      path("certificate_file", &Settings::certificate_file, "a path, or empty",
           "The identities that client certificates stand for (YAML). SIGHUP reads it again."),
      flag("allow_plain_http", &Settings::allow_plain_http, "true", "false",
           "true: without tls_cert, the manager also listens at addresses that other hosts reach."),
      count("tls_handshakes_per_second_max", &Settings::tls_handshakes_per_second_max, 0, 1'000'000,
            "The most TLS handshakes a second with one address; twice as many may come at once, and more wait. 0: no "
            "limit."),
  };
}

bool is_loopback(const std::string& host) {
  in_addr v4{};
  in6_addr v6{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24U == 127;
  if (::inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return host == "localhost";
}

std::vector<Field> network_fields() {
  using namespace std::chrono_literals;
  return {
      endpoint("listen", &Settings::listen, "The address that serves the REST API, the metrics and the web page."),
      flag("reads_need_token", &Settings::reads_need_token, "true", "false", "true: reading, too, needs a token."),
      choice("tenants_read", &Settings::tenants_read, {"own", "all"},
             "The groups that tenants see, if reading needs a token."),
      count("threads", &Settings::threads, 1, 64, "Threads that serve requests."),
      count("connections_max", &Settings::connections_max, 1, 65536,
            "The most HTTP connections without a token, and as many with a token; a further one displaces the oldest."),
      count("requests_per_second_max", &Settings::requests_per_second_max, 0, 1'000'000,
            "The most requests a second of each identity, and of each address whose callers prove none; twice as many "
            "may come at once. 0: no limit."),
      duration("request_limit", &Settings::request_limit, 100ms, 10min,
               "The time within which a whole request must come in."),
      choice("security", &Settings::security, {"off", "authenticate", "encrypt"},
             "Groups with less security than this get no trees. Ranks set TRIBUTARY_SECURITY."),
      duration("idle_limit", &Settings::idle_limit, 100ms, 1h,
               "The time after which a connection without a request is closed."),
      path("ready_file", &Settings::ready_file, "a path, or empty",
           "The manager writes this file when it serves: a line of JSON with the chosen port."),
      choice("log_level", &Settings::log_level, {"trace", "debug", "info", "warn", "error"},
             "The lowest level that is logged, on standard error. SIGHUP reads it again."),
      choice("log_format", &Settings::log_format, {"text", "json"},
             "The form of log lines: text for people, json for programs, an object on each line."),
  };
}

std::vector<Field> state_fields() {
  return {
      text("state_directory", &Settings::state_directory, "a path",
           "The directory of the database, the signing key and the tokens; the manager makes it with mode 0700.",
           [](std::string_view path) -> Status {
             if (path.empty()) return wrong("it is empty");
             return {};
           }),
      path("aggregator_token_file", &Settings::aggregator_token_file,
           "a path, or empty for aggregator.token in the state directory",
           "The token with which aggregators register; the first start makes it, with mode 0600."),
      path("job_token_file", &Settings::job_token_file, "a path, or empty for job.token in the state directory",
           "The token with which jobs ask for groups; the first start makes it, with mode 0600."),
      path("identity_key_file", &Settings::identity_key_file,
           "a path, or empty for identity.keys in the state directory",
           "The keys of identity tokens; the first start makes the file, with mode 0600. SIGHUP reads it again."),
      path("audit_file", &Settings::audit_file, "a path, or empty for none",
           "The audit log, lines of JSON: each caller, the change that it asked for, and the outcome. SIGHUP opens it "
           "again."),
      flag("old_secrets", &Settings::old_secrets, "true", "false",
           "false: the manager refuses the aggregator token and the job token, which all their holders share."),
      bytes("database_bytes_max", &Settings::database_bytes_max, 0, 1ULL << 40,
            "The most bytes of the database; 0B: as many as the disk has."),
  };
}

std::vector<Field> replica_fields() {
  using namespace std::chrono_literals;
  return {
      text("store", &Settings::store, "etcd://host:2379,host:2379,host:2379[/prefix], etcds://..., or empty",
           "The store of the records. Empty: SQLite in the state directory, for one manager. etcd: for several "
           "managers, of which one leads. etcds: the same over TLS.",
           [](std::string_view url) -> Status {
             if (url.empty()) return {};
             const auto etcd = parse_etcd_url(url);
             return etcd ? Status{} : std::unexpected(etcd.error());
           }),
      path("store_user", &Settings::store_user, "a name, or empty", "The user of etcd. Empty: etcd asks for no user."),
      path("store_password_file", &Settings::store_password_file, "a path, or empty",
           "The file with the password of store_user; no other user may read it."),
      tls_path("store_tls_ca", &Settings::store_tls, &service::TlsFiles::ca,
               "The certificates of the CAs that the manager accepts for an etcd of etcds://."),
      tls_path(
          "store_tls_cert", &Settings::store_tls, &service::TlsFiles::cert,
          "The manager's certificate as a client of etcd, if etcd asks for a certificate. It needs store_tls_key."),
      tls_path("store_tls_key", &Settings::store_tls, &service::TlsFiles::key, "The key of store_tls_cert."),
      tls_path(
          "store_tls_crl", &Settings::store_tls, &service::TlsFiles::crl,
          "The revocation list of store_tls_ca. With it the manager checks every member of etcd against the list."),
      path("advertise", &Settings::advertise, "http://host:port, https://host:port, or empty",
           "The URL where the other managers of this store reach this manager. Empty: the address of listen, or the "
           "host's name if listen means every address."),
      seconds("leader_lease", &Settings::leader_lease, 2s, 1min,
              "With etcd: another manager leads when the leader has not renewed within this time."),
  };
}

std::vector<Field> cluster_fields() {
  using namespace std::chrono_literals;
  return {
      path("topology", &Settings::topology, "a path, or empty",
           "The topology file (YAML). Empty: the topology that was put over the API, or else a fabric in which every "
           "host reaches every other host at one rate. SIGHUP reads the file again."),
      seconds("aggregator_lease", &Settings::aggregator_lease, 1s, 1h,
              "An aggregator that has not renewed within this time gets no new trees."),
      seconds("group_lease", &Settings::group_lease, 1s, 1h,
              "A group that has not renewed within this time loses its reservation."),
      seconds("token_life", &Settings::token_life, 5s, 24h,
              "The time within which a rank may join with its tokens. The clocks of managers and aggregators must "
              "agree better than this."),
      seconds("failed_exclusion", &Settings::failed_exclusion, 1s, 24h,
              "The time for which a group avoids an aggregator that it saw fail and that did not restart."),
      seconds("retry_after", &Settings::retry_after, 1s, 1h,
              "The time after which a group without trees should ask again."),
      count("window", &Settings::window, 0, kWindowMax,
            "Segments that a child may have without a result, unless a job asks for another number. 0: the manager "
            "chooses by the slowest of the ranks' links."),
      segment_bytes(),
      count("aggregators_max", &Settings::aggregators_max, 1, 1U << 20,
            "The most aggregators; the manager refuses more."),
      count("groups_max", &Settings::groups_max, 1, 1U << 20, "The most groups; the manager refuses more."),
      count("ranks_max", &Settings::ranks_max, 1, kRanksMax, "The most ranks of one group."),
  };
}

}  // namespace

const std::vector<Field>& fields() {
  static const std::vector<Field> all = [] {
    std::vector<Field> list = network_fields();
    for (auto&& more : {tls_fields(), state_fields(), replica_fields(), cluster_fields()})
      list.insert(list.end(), more.begin(), more.end());
    return list;
  }();
  return all;
}

namespace {

/// Refuses settings that are valid alone, but not together.
void check_together(const Settings& settings, const service::Written& written, service::Mistakes& mistakes) {
  const bool secure = is_etcd_with_tls(settings.store);
  if (secure && settings.store_tls.ca.empty())
    mistakes.add(service::mistake_in(written, "store", "etcds:// needs the CA of etcd's certificates", "store_tls_ca"));
  if (!secure && !settings.store_tls.empty())
    mistakes.add(service::mistake_in(written, "store", "files of TLS are set for an etcd without TLS", "etcds://..."));
  if (settings.store_user.empty() == settings.store_password_file.empty()) return;
  const bool user = !settings.store_user.empty();
  const std::string set = user ? "store_user" : "store_password_file";
  const std::string other = user ? "store_password_file" : "store_user";
  mistakes.add(service::mistake_in(written, set, "it contradicts " + other + ", which is empty", "both or none"));
}

}  // namespace

Result<Settings> parse_settings(const std::string& text, const std::string& file,
                                const std::vector<service::Override>& overrides) {
  Settings settings;
  service::Mistakes mistakes;
  const auto written = service::read_settings<Settings>(fields(), text, file, overrides, settings, mistakes);
  if (mistakes.none()) check_together(settings, written, mistakes);
  if (auto ok = mistakes.status(); !ok) return std::unexpected(ok.error());
  return settings;
}

Result<Settings> load_settings(const std::string& path, const std::vector<service::Override>& overrides) {
  if (path.empty()) return parse_settings("", "", overrides);
  const auto text = service::read_file(path, service::kSettingsFileBytesMax);
  if (!text) return service::refuse(service::unreadable("--config", path, text.error().message));
  return parse_settings(*text, path, overrides);
}

Status check_http(const Settings& settings) {
  const service::TlsFiles& tls = settings.tls;
  if (tls.cert.empty() && !tls.empty())
    return service::refuse({.key = "tls_cert",
                            .why = "it is missing, while other files of TLS are set",
                            .allowed = "the file of the manager's certificate"});
  if (!settings.certificate_file.empty() && tls.ca.empty())
    return service::refuse({.key = "certificate_file",
                            .value = settings.certificate_file,
                            .why = "the manager asks callers for no certificate without tls_ca",
                            .allowed = "both, or none"});
  if (!tls.cert.empty() || settings.allow_plain_http || is_loopback(settings.listen.host)) return {};
  return service::refuse({.key = "listen",
                          .value = to_string(settings.listen),
                          .why = "other hosts can reach it, and tokens would pass in clear",
                          .allowed = "127.0.0.1; or any address with tls_cert and tls_key, or with "
                                     "allow_plain_http: true (--allow-plain-http)"});
}

std::string print(const Settings& settings) {
  return "# tributary-manager: every setting, with its meaning, what it may be, and its default\n\n" +
         service::print_settings<Settings>(fields(), settings);
}

}  // namespace tributary::manager
