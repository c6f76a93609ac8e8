// tributary doctor, on this host and against a real manager.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "client/cli/cluster/guardian.h"
#include "client/cli/cluster/local_cluster.h"
#include "client/cli/cluster/machine.h"
#include "tests/system/cli/command.h"

namespace tributary::cli_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json findings_of(const Outcome& outcome, const std::string& part) {
  const json all = json::parse(outcome.output, nullptr, false);
  EXPECT_FALSE(all.is_discarded()) << outcome.output << outcome.error;
  json found = json::array();
  for (const json& one : all.value("findings", json::array())) {
    if (one.at("part") == part) found.push_back(one);
  }
  return found;
}

TEST(Doctor, ReportsEveryPartOfTheHost) {
  const Workplace work;
  const Outcome outcome = work.tributary({"doctor", "--json"});
  EXPECT_THAT(outcome.code, testing::AnyOf(0, 1)) << outcome.error;
  const json all = json::parse(outcome.output, nullptr, false);
  ASSERT_FALSE(all.is_discarded()) << outcome.output;
  EXPECT_EQ(all.at("good"), outcome.code == 0);
  for (const char* part : {"network", "rdma", "memory", "processor", "gpu", "service"})
    EXPECT_FALSE(findings_of(outcome, part).empty()) << part;
  const Outcome text = work.tributary({"doctor"});
  EXPECT_EQ(text.code, outcome.code);
  EXPECT_THAT(text.output, HasSubstr(" unknown."));
}

TEST(Doctor, AManagerThatDoesNotAnswerIsBad) {
  Workplace work;
  work.variables["TRIBUTARY_MANAGER"] = "http://127.0.0.1:9";
  const Outcome outcome = work.tributary({"doctor", "--output", "json"});
  EXPECT_EQ(outcome.code, 1);
  const json service = findings_of(outcome, "service");
  ASSERT_EQ(service.size(), 1U);
  EXPECT_EQ(service[0].at("level"), "bad");
  EXPECT_THAT(service[0].at("found").get<std::string>(), HasSubstr("127.0.0.1"));
}

/// A manager with two aggregators, and a command that knows this manager.
class DoctorOfACluster : public testing::Test {
 protected:
  void SetUp() override {
    auto started =
        cli::LocalCluster::start({.shape = {.ranks = 2, .aggregators = 2, .levels = 1}, .folder = folder_}, &guardian_);
    ASSERT_TRUE(started) << started.error().message;
    cluster_ = std::move(*started);
    work_.variables["TRIBUTARY_MANAGER"] = cluster_->manager_url();
  }

  const std::string folder_ = cli::make_private_folder().value();
  cli::Guardian guardian_ = cli::Guardian::start(folder_).value();
  std::unique_ptr<cli::LocalCluster> cluster_;
  Workplace work_;
};

TEST_F(DoctorOfACluster, ReachesTheManagerAndEachAggregator) {
  const json service = findings_of(work_.tributary({"doctor", "--json"}), "service");
  ASSERT_EQ(service.size(), 6U) << service.dump(2);  // manager, clock, and two findings for each aggregator
  for (const json& one : service) EXPECT_EQ(one.at("level"), "good") << one.dump(2);
  EXPECT_THAT(service[1].at("found").get<std::string>(), HasSubstr("the manager's clock is 0.0"));
  EXPECT_THAT(service[2].at("found").get<std::string>(), HasSubstr("answers"));
  EXPECT_EQ(service[3].at("what"), "path MTU to " + service[2].at("what").get<std::string>().substr(11));
}

TEST_F(DoctorOfACluster, MeasuresEachAggregatorAndLeavesNoGroup) {
  const json denied = findings_of(work_.tributary({"doctor", "--json", "--measure"}), "measured");
  ASSERT_EQ(denied.size(), 2U) << denied.dump(2);
  EXPECT_EQ(denied[0].at("level"), "unknown");
  EXPECT_THAT(denied[0].at("mend").get<std::string>(), HasSubstr("--token-file FILE"));
  work_.variables["TRIBUTARY_TOKEN_FILE"] = cluster_->job_token_file();
  const json measured = findings_of(work_.tributary({"doctor", "--json", "--measure"}), "measured");
  ASSERT_EQ(measured.size(), 8U) << measured.dump(2);
  for (const json& one : measured) EXPECT_NE(one.at("level"), "bad") << one.dump(2);
  EXPECT_THAT(measured[0].at("found").get<std::string>(), HasSubstr("both ways at once"));
  const json one = findings_of(work_.tributary({"doctor", "--json", "--measure", "aggregator-1,nobody"}), "measured");
  ASSERT_EQ(one.size(), 5U) << one.dump(2);
  EXPECT_EQ(one[0].at("what"), "rate to aggregator-1");
  EXPECT_THAT(one[4].at("found").get<std::string>(), HasSubstr("no aggregator of this name"));
  EXPECT_THAT(work_.tributary({"groups", "-o", "json"}).output, HasSubstr("\"groups\": []"));
}

}  // namespace
}  // namespace tributary::cli_test
