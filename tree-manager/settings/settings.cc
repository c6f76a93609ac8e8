#include "tree-manager/settings/settings.h"

#include <algorithm>
#include <array>
#include <functional>
#include <sstream>

#include "service-kit/units.h"
#include "tree-manager/topology/yaml_fields.h"
#include "tributary/protocol/frame.h"

namespace tributary::manager {
namespace {

using Milliseconds = std::chrono::milliseconds;

/// One setting: its name in the file, its meaning, and how its text is read and written.
struct Field {
  std::string name;
  std::string range;
  std::string help;
  std::function<Status(Settings&, std::string_view)> read;
  std::function<std::string(const Settings&)> write;
};

std::unexpected<Error> out_of_range(std::string_view text, const std::string& range) {
  return fail(Errc::bad_config, "'" + std::string(text) + "' is out of range; accepted: " + range);
}

Field text_field(const char* name, const char* range, const char* help, std::string Settings::* member) {
  return {name, range, help,
          [member](Settings& settings, std::string_view text) -> Status {
            settings.*member = text;
            return {};
          },
          [member](const Settings& settings) {
            const std::string& value = settings.*member;
            return value.empty() ? std::string("\"\"") : value;
          }};
}

Field choice_field(const char* name, std::vector<std::string> choices, const char* help,
                   std::string Settings::* member) {
  std::string range;
  for (const std::string& choice : choices) range += (range.empty() ? "" : ", ") + choice;
  return {name, range, help,
          [member, choices, range](Settings& settings, std::string_view text) -> Status {
            if (std::find(choices.begin(), choices.end(), text) == choices.end()) return out_of_range(text, range);
            settings.*member = text;
            return {};
          },
          [member](const Settings& settings) { return settings.*member; }};
}

Field flag_field(const char* name, const char* help, bool Settings::* member) {
  return {name, "true or false", help,
          [member](Settings& settings, std::string_view text) -> Status {
            if (text != "true" && text != "false") return out_of_range(text, "true or false");
            settings.*member = text == "true";
            return {};
          },
          [member](const Settings& settings) { return std::string(settings.*member ? "true" : "false"); }};
}

Field number_field(const char* name, std::uint64_t low, std::uint64_t high, const char* help,
                   std::uint64_t Settings::* member) {
  return {name, std::to_string(low) + " to " + std::to_string(high), help,
          [=](Settings& settings, std::string_view text) -> Status {
            const auto value = parse_whole_number(text, low, high);
            if (!value) return std::unexpected(value.error());
            settings.*member = *value;
            return {};
          },
          [member](const Settings& settings) { return std::to_string(settings.*member); }};
}

Field bytes_field(const char* name, std::uint64_t low, std::uint64_t high, const char* help,
                  std::uint64_t Settings::* member) {
  const std::string range = service::bytes_text(low) + " to " + service::bytes_text(high);
  return {name, range, help,
          [=](Settings& settings, std::string_view text) -> Status {
            const auto value = service::naming(text, service::parse_bytes(text));
            if (!value) return std::unexpected(value.error());
            if (*value < low || *value > high) return out_of_range(text, range);
            settings.*member = *value;
            return {};
          },
          [member](const Settings& settings) { return service::bytes_text(settings.*member); }};
}

Field duration_field(const char* name, Milliseconds low, Milliseconds high, const char* help,
                     Milliseconds Settings::* member) {
  const std::string range = service::duration_text(low) + " to " + service::duration_text(high);
  return {name, range, help,
          [=](Settings& settings, std::string_view text) -> Status {
            const auto value = service::naming(text, service::parse_duration(text));
            if (!value) return std::unexpected(value.error());
            if (*value < low || *value > high) return out_of_range(text, range);
            settings.*member = std::chrono::ceil<Milliseconds>(*value);
            return {};
          },
          [member](const Settings& settings) { return service::duration_text(settings.*member); }};
}

Field listen_field() {
  return {"listen", "host:port, or [IPv6]:port; port 0 chooses one",
          "The address that serves the REST API, the metrics and the web page.",
          [](Settings& settings, std::string_view text) -> Status {
            auto endpoint = parse_endpoint(text);
            if (!endpoint) return fail(Errc::bad_config, endpoint.error().message);
            settings.listen = std::move(*endpoint);
            return {};
          },
          [](const Settings& settings) { return "\"" + to_string(settings.listen) + "\""; }};
}

std::vector<Field> network_fields() {
  using namespace std::chrono_literals;
  return {
      listen_field(),
      flag_field("reads_need_token", "true: reading, too, needs one of the tokens.", &Settings::reads_need_token),
      number_field("threads", 1, 64, "Threads that serve requests.", &Settings::threads),
      number_field(
          "connections_max", 1, 65536,
          "The most HTTP connections without a token, and again of those with one; one more closes the oldest.",
          &Settings::connections_max),
      duration_field("request_limit", 100ms, 10min, "The time within which a whole request must come in.",
                     &Settings::request_limit),
      duration_field("idle_limit", 100ms, 1h, "The time after which a connection without a request is closed.",
                     &Settings::idle_limit),
      text_field("ready_file", "a path, or empty",
                 "The manager writes this file when it serves: a line of JSON with the chosen port.",
                 &Settings::ready_file),
      choice_field("log_level", {"trace", "debug", "info", "warn", "error"},
                   "The lowest level that is logged, on standard error. SIGHUP reads it anew.", &Settings::log_level),
  };
}

std::vector<Field> state_fields() {
  return {
      text_field("state_directory", "a path",
                 "The directory of the database, the signing key and the tokens; the manager makes it with mode 0700.",
                 &Settings::state_directory),
      text_field("aggregator_token_file", "a path, or empty for aggregator.token in the state directory",
                 "The token with which aggregators register; the first start makes it, with mode 0600.",
                 &Settings::aggregator_token_file),
      text_field("job_token_file", "a path, or empty for job.token in the state directory",
                 "The token with which jobs ask for groups; the first start makes it, with mode 0600.",
                 &Settings::job_token_file),
      bytes_field("database_bytes_max", 0, 1ULL << 40, "The most bytes of the database; 0B: as many as the disk has.",
                  &Settings::database_bytes_max),
  };
}

std::vector<Field> cluster_fields() {
  using namespace std::chrono_literals;
  return {
      text_field(
          "topology", "a path, or empty",
          "The topology file (YAML). Empty: the topology that was put over the API, or else a fabric in which every "
          "host reaches every other at one rate. SIGHUP reads the file anew.",
          &Settings::topology),
      duration_field("aggregator_lease", 1s, 1h,
                     "An aggregator that has not renewed within this time gets no new trees.",
                     &Settings::aggregator_lease),
      duration_field("group_lease", 1s, 1h, "A group that has not renewed within this time loses its reservation.",
                     &Settings::group_lease),
      duration_field(
          "token_life", 5s, 24h,
          "The time within which a rank may join with its credentials. The clocks of managers and aggregators must "
          "agree better than this.",
          &Settings::token_life),
      duration_field("failed_exclusion", 1s, 24h,
                     "The time for which a group avoids an aggregator that it saw fail and that did not restart.",
                     &Settings::failed_exclusion),
      duration_field("retry_after", 1s, 1h, "The time after which a group without trees should ask again.",
                     &Settings::retry_after),
      number_field(
          "window", 0, kWindowMax,
          "Segments that a child may have without a result, unless a job asks for another number. 0: the manager "
          "chooses by the slowest of the ranks' links.",
          &Settings::window),
      bytes_field(
          "segment_bytes", 0, kSegmentBytesMax,
          "The size of a segment, a multiple of 64 B, unless a job asks for another. 0B: the manager chooses by the "
          "slowest of the ranks' links.",
          &Settings::segment_bytes),
      number_field("aggregators_max", 1, 1U << 20, "The most aggregators; the manager refuses more.",
                   &Settings::aggregators_max),
      number_field("groups_max", 1, 1U << 20, "The most groups; the manager refuses more.", &Settings::groups_max),
      number_field("ranks_max", 1, kRanksMax, "The most ranks of one group.", &Settings::ranks_max),
  };
}

const std::vector<Field>& fields() {
  static const std::vector<Field> all = [] {
    std::vector<Field> list = network_fields();
    for (auto&& more : {state_fields(), cluster_fields()}) list.insert(list.end(), more.begin(), more.end());
    return list;
  }();
  return all;
}

}  // namespace

Result<Settings> parse_settings(const std::string& text, const std::string& file) {
  const auto root = parse_yaml(text, file);
  if (!root) return std::unexpected(root.error());
  Settings settings;
  // An empty file leaves every setting at its default.
  if (root->IsNull()) return settings;
  YamlErrors errors(file);
  YamlMap map(*root, "", errors);
  for (const Field& field : fields()) {
    (void)map.parsed<bool>(field.name, true, [&](std::string_view value) -> Result<bool> {
      if (auto ok = field.read(settings, value); !ok) return std::unexpected(ok.error());
      return true;
    });
  }
  map.finish();
  if (auto ok = errors.status(); !ok) return std::unexpected(ok.error());
  if (auto ok = check(settings); !ok) return fail(Errc::bad_config, file + ": " + ok.error().message);
  return settings;
}

Result<Settings> load_settings(const std::string& path) {
  const auto text = read_text_file(path, "configuration file");
  if (!text) return std::unexpected(text.error());
  return parse_settings(*text, path);
}

Status check(const Settings& settings) {
  if (settings.segment_bytes % 64 != 0 || (settings.segment_bytes != 0 && settings.segment_bytes < kSegmentBytesMin)) {
    return fail(Errc::bad_config, "segment_bytes: it must be 0B, or a multiple of 64 B from " +
                                      std::to_string(kSegmentBytesMin) + " B on");
  }
  if (settings.state_directory.empty()) return fail(Errc::bad_config, "state_directory: a path is needed");
  for (const auto& [name, lease] :
       {std::pair{"aggregator_lease", settings.aggregator_lease}, std::pair{"group_lease", settings.group_lease},
        std::pair{"token_life", settings.token_life}, std::pair{"retry_after", settings.retry_after},
        std::pair{"failed_exclusion", settings.failed_exclusion}}) {
    if (lease.count() % 1000 != 0) return fail(Errc::bad_config, std::string(name) + ": it must be whole seconds");
  }
  return {};
}

std::string print(const Settings& settings) {
  static const Settings defaults;
  std::ostringstream out;
  out << "# tributary-manager: every setting, with its meaning, what it accepts and its default\n";
  for (const Field& field : fields()) {
    out << "\n# " << field.help << "\n# accepts: " << field.range << "; default: " << field.write(defaults) << "\n"
        << field.name << ": " << field.write(settings) << "\n";
  }
  return out.str();
}

}  // namespace tributary::manager
