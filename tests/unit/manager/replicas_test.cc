// Managers that share a store: which manager answers which request, also when the leadership changes. The test has its
// own clock and store; managers ask each other over loopback.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "service-kit/http/http_server.h"
#include "tests/unit/manager/cluster_fixture.h"
#include "tests/unit/manager/temporary_folder.h"
#include "tests/unit/service_kit/test_ca.h"
#include "tree-manager/api/audit_log.h"
#include "tree-manager/identity/key_file.h"
#include "tree-manager/replicas/front.h"
#include "tree-manager/replicas/secret_files.h"
#include "tree-manager/store/etcd/etcd_url.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using service::HttpHead;
using ::testing::HasSubstr;

constexpr std::chrono::milliseconds kLease{4000};
constexpr const char* kJob = "job-token-of-the-test";
constexpr const char* kFleet = "aggregator-token-of-the-test";

/// The state that all managers of one test share.
struct Shared {
  ManualClock clock;
  SigningKey key = std::move(*SigningKey::generate());
  LiveKey live_key{key};
  std::shared_ptr<MemoryStore> records = std::make_shared<MemoryStore>();
  std::optional<LeaderSeen> leader;
  LeaseId lease_of_leader = 0;
  std::uint64_t revision = 0;
  LeaseId last_lease = 0;
};

class TestElection final : public Election {
 public:
  explicit TestElection(Shared& shared) : shared_(shared) {}
  std::string url;
  bool cut = false;

  Result<LeaseId> make_lease(std::chrono::milliseconds) override {
    if (cut) return lost();
    return ++shared_.last_lease;
  }
  Result<std::optional<Term>> stand(LeaseId lease) override {
    if (cut) return lost();
    if (shared_.leader) return std::nullopt;
    shared_.leader = LeaderSeen{url, ++shared_.revision};
    shared_.lease_of_leader = lease;
    return Term{.lease = lease, .revision = shared_.revision, .version = 1, .fence_base = 1000, .candidate = url};
  }
  Result<bool> renew(LeaseId lease) override {
    if (cut) return lost();
    return shared_.leader && shared_.lease_of_leader == lease;
  }
  void resign(LeaseId lease) override {
    if (!cut && shared_.lease_of_leader == lease) shared_.leader.reset();
  }
  Result<std::optional<LeaderSeen>> look() override {
    if (cut) return lost();
    return shared_.leader;
  }

 private:
  static std::unexpected<Error> lost() { return fail(Errc::unreachable, "the test has cut the store off"); }
  Shared& shared_;
};

/// Holds what a manager of https needs.
struct OverTls {
  std::shared_ptr<service::TlsContext> server{};
  std::shared_ptr<LiveCertificates> certificates{};
};

/// One manager without threads: the test calls its work.
class Manager {
 public:
  explicit Manager(Shared& shared, AuditLog* audit = nullptr, PassingSettings passing = {}, OverTls tls = {})
      : shared_(shared), election_(shared), passing_(passing, Forwarder(shared.live_key, shared.clock)) {
    const auto none = [] { return Result<std::optional<Topology>>(std::nullopt); };
    copy_ = std::make_unique<Copy>(of_cluster_, shared.live_key, shared.clock,
                                   Copy::Source{.load = [this] { return load(); }, .topology = none}, 5s);
    member_ =
        std::make_unique<Member>(election_, shared.clock, LeadershipSettings{.lease = kLease},
                                 MemberWork{.open = [this](const Term&) { return open(); }, .begin = {}, .follow = {}},
                                 [this] { passing_.cancel(); });
    api_ = std::make_unique<Api>([this] { return member_->cluster(); },
                                 ApiSettings{.aggregator_token = kFleet,
                                             .job_token = kJob,
                                             .certificates = tls.certificates,
                                             .audit = audit,
                                             .standing = [this] { return front_->standing(); },
                                             .events = of_cluster_.events});
    front_ = std::make_unique<Front>(*api_, *member_, passing_, *copy_, Forwarder(shared.live_key, shared.clock));
    server_ = std::move(*service::HttpServer::start({.listen = {"127.0.0.1", 0}, .tls = tls.server}, *front_));
    election_.url = (tls.server ? "https://" : "http://") + to_string(server_->local());
  }

  /// Takes one turn in the election, and does the keeper's work that is then due.
  void turn() {
    static_cast<void>(member_->turn());
    static_cast<void>(member_->keep());
  }
  HttpReply call(const std::string& method, const std::string& path, const std::string& token = "",
                 const json& body = nullptr, const std::string& passed_on = "", const char* subject = nullptr) {
    HttpHead head{.method = method,
                  .path = path,
                  .query = {},
                  .authorization = token.empty() ? "" : "Bearer " + token,
                  .remote_address = "192.0.2.7",
                  .passed_on = passed_on};
    if (subject != nullptr)
      head.certificate = std::make_shared<const service::Certificate>(service::Certificate{.subject = subject});
    const auto admission = front_->admit(head);
    if (admission.refusal) return *admission.refusal;
    return front_->handle(head, body.is_null() ? "" : body.dump());
  }
  HttpReply ask_for_events(const std::string& known = "") {
    const HttpHead head{.method = "GET",
                        .path = "/v1/events",
                        .query = {},
                        .authorization = {},
                        .remote_address = "192.0.2.7",
                        .accept = "text/event-stream",
                        .last_event_id = known};
    const auto admission = front_->admit(head);
    return admission.refusal ? *admission.refusal : front_->handle(head, "");
  }
  HttpReply ask_for_group() { return call("POST", "/v1/groups", kJob, {{"job", "j"}, {"ranks", {"a", "b"}}}); }
  json about_leader() { return json::parse(call("GET", "/v1/leader").body); }

  [[nodiscard]] Member& member() { return *member_; }
  [[nodiscard]] TestElection& election() { return election_; }
  [[nodiscard]] Api& api() { return *api_; }
  bool store_lost = false;
  bool store_unreadable = false;

 private:
  Result<Snapshot> load() const {
    if (store_unreadable) return fail(Errc::unreachable, "the test's store cannot be read");
    return shared_.records->load();
  }
  Result<std::unique_ptr<Reign>> open() {
    auto reign = std::make_unique<Reign>();
    reign->store = std::make_unique<SharedStore>(shared_.records);
    auto cluster = Cluster::open(of_cluster_, *reign->store, shared_.key, shared_.clock, std::nullopt);
    if (!cluster) return std::unexpected(cluster.error());
    reign->cluster = std::move(*cluster);
    reign->lost = [this] { return store_lost; };
    return reign;
  }

  Shared& shared_;
  const ClusterSettings of_cluster_{};
  TestElection election_;
  Passing passing_;
  std::unique_ptr<Copy> copy_;
  std::unique_ptr<Member> member_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<Front> front_;
  std::unique_ptr<service::HttpServer> server_;  // declared last, because it uses the members above
};

std::string code_of(const HttpReply& reply) {
  const json body = json::parse(reply.body, nullptr, false);
  return body.is_object() && body.contains("error") ? body["error"].value("code", "") : "";
}

bool has_header(const HttpReply& reply, const std::string& name) {
  return std::ranges::any_of(reply.headers, [&](const auto& it) { return it.first == name; });
}

TEST(Replicas, TheLeaderAnswersAndTheFollowerPassesRequestsOn) {
  Shared shared;
  Manager one(shared), two(shared);
  one.turn();
  two.turn();
  EXPECT_TRUE(one.member().leads());
  EXPECT_FALSE(two.member().leads());

  const HttpReply made = two.ask_for_group();
  ASSERT_EQ(made.status, 200U) << made.body;
  EXPECT_EQ(shared.records->groups.size(), 1U);
  const std::string path = "/v1/groups/" + std::to_string(shared.records->groups.begin()->first);
  const HttpReply read = two.call("GET", path);
  EXPECT_EQ(read.status, 200U);
  EXPECT_FALSE(has_header(read, "Tributary-Copy")) << "the answer is the leader's";
  EXPECT_EQ(one.about_leader()["role"], "leader");
  EXPECT_EQ(two.about_leader()["role"], "follower");
  EXPECT_EQ(two.about_leader()["leader"], one.election().url);
  EXPECT_EQ(two.about_leader()["fence"], 0);
  EXPECT_GT(one.about_leader()["fence"], 0);
}

TEST(Replicas, ARefusalOfTheLeaderIsPassedOnToo) {
  Shared shared;
  Manager one(shared), two(shared);
  one.turn();
  two.turn();
  EXPECT_EQ(two.call("POST", "/v1/groups", kJob, {{"ranks", json::array()}}).status, 400U);
  EXPECT_EQ(two.call("GET", "/v1/groups/7").status, 404U);
  EXPECT_EQ(two.call("POST", "/v1/groups", "wrong").status, 401U);
}

TEST(Replicas, NobodyLeadsBeforeTheLeaseHasEndedAndSomebodyAfter) {
  Shared shared;
  Manager one(shared), two(shared);
  one.turn();
  two.turn();
  one.election().cut = true;
  shared.clock.advance(kLease);
  EXPECT_FALSE(one.member().leads()) << "by its own clock, without a turn";
  shared.leader.reset();  // the store's lease has ended
  two.turn();
  ASSERT_TRUE(two.member().leads());
  EXPECT_EQ(code_of(one.ask_for_group()), "no_leader");
  one.turn();
  EXPECT_EQ(one.about_leader()["role"], "follower");
  EXPECT_EQ(one.about_leader()["leader"], "") << "it cannot know who leads";
  EXPECT_EQ(two.ask_for_group().status, 200U);
  EXPECT_EQ(two.about_leader()["role"], "leader");
}

TEST(Replicas, ASignatureThatCameTooLateDoesNotLeaveTheManager) {
  Shared shared;
  Manager one(shared);
  one.turn();
  ASSERT_EQ(one.ask_for_group().status, 200U);
  shared.records->before_write = [&] { shared.clock.advance(kLease); };
  const HttpReply late = one.ask_for_group();
  EXPECT_EQ(late.status, 503U) << late.body;
  EXPECT_EQ(code_of(late), "no_leader");
  EXPECT_THAT(late.body, ::testing::Not(HasSubstr("lanes")));
}

TEST(Replicas, WritesOfALeadershipThatIsOverAreRefused) {
  Shared shared;
  Manager one(shared), two(shared);
  one.turn();
  const auto old = one.member().cluster();
  ASSERT_NE(old, nullptr);
  shared.leader.reset();  // as after a long standstill
  two.turn();
  ASSERT_TRUE(two.member().leads());
  EXPECT_EQ(old->create_group({.job = "j", .hosts = {"a", "b"}}).error().code, Errc::retry);
  EXPECT_TRUE(shared.records->groups.empty());
  EXPECT_LT(old->fence(), two.member().cluster()->fence());
}

TEST(Replicas, AManagerWhoseStoreRefusesItSaysThatNobodyLeads) {
  Shared shared;
  Manager one(shared), two(shared);
  one.turn();
  one.store_lost = true;
  EXPECT_FALSE(one.member().leads());
  EXPECT_EQ(code_of(one.ask_for_group()), "no_leader");
  one.turn();  // gives the leadership up
  two.turn();
  EXPECT_TRUE(two.member().leads());
}

TEST(Replicas, ARequestIsPassedOnOnce) {
  Shared shared;
  Manager one(shared), two(shared);
  one.turn();
  two.turn();
  const HttpReply reply =
      two.call("POST", "/v1/groups", kJob, {{"job", "j"}, {"ranks", {"a", "b"}}}, "192.0.2.9 from-another");
  EXPECT_EQ(code_of(reply), "no_leader");
  EXPECT_TRUE(shared.records->groups.empty());
}

TEST(Replicas, TheAuditLogNamesTheCallerAndNotTheManagerThatPassedOn) {
  TemporaryFolder folder;
  const auto audit = AuditLog::open(folder.file("audit"));
  ASSERT_TRUE(audit.has_value());
  Shared shared;
  Manager one(shared, audit->get()), two(shared);
  one.turn();
  two.turn();
  ASSERT_EQ(two.ask_for_group().status, 200U);
  const HttpReply forged = one.call("POST", "/v1/groups", kJob, {{"job", "j"}, {"ranks", {"a", "b"}}},
                                    "198.51.100.1 1800000000 0 - " + std::string(64, '0'));
  ASSERT_EQ(forged.status, 200U);
  std::ifstream lines(folder.file("audit"));
  std::string passed, direct;
  std::getline(lines, passed);
  std::getline(lines, direct);
  EXPECT_EQ(json::parse(passed)["from"], "192.0.2.7");
  EXPECT_EQ(json::parse(direct)["from"], "192.0.2.7") << "a header without the managers' seal counts for nothing";
}

TEST(Replicas, ARequestThatACertificateProvesIsPassedOnOverTlsWithItsIdentity) {
  TemporaryFolder folder;
  service::TestCa ca(folder.path(), "ca");
  using enum service::TlsContext::Side;
  const auto of_server = service::TlsContext::open(server, ca.issue("server"));
  const auto of_client = service::TlsContext::open(client, {.ca = ca.path()});
  ASSERT_TRUE(of_server && of_client);
  const auto listed = std::make_shared<LiveCertificates>(
      *CertificateIdentities::parse("- {subject: CN=alice, role: tenant, tenant: physics}\n", "c.yaml"));
  Shared shared;
  Manager one(shared, nullptr, {.tls = *of_client}, {.server = *of_server, .certificates = listed});
  Manager two(shared, nullptr, {.tls = *of_client}, {.server = *of_server, .certificates = listed});
  one.turn();
  two.turn();
  const json body = {{"job", "j"}, {"ranks", {"a", "b"}}};
  const auto ask = [&](Manager& manager, const char* subject, const std::string& passed_on = "") {
    return manager.call("POST", "/v1/groups", "", body, passed_on, subject);
  };
  const HttpReply made = ask(two, "CN=alice");
  ASSERT_EQ(made.status, 200U) << made.body;
  EXPECT_EQ(shared.records->groups.begin()->second.owner, "physics");
  EXPECT_EQ(ask(two, "CN=mallory").status, 401U);
  EXPECT_EQ(ask(one, "CN=alice", "192.0.2.9 1 0 - " + std::string(64, '0')).status, 401U)
      << "the certificate of a manager that passes on is not the caller's";
  Manager three(shared, nullptr, {.tls = *of_client}, {.certificates = listed});
  shared.leader->url = three.election().url;  // http
  two.turn();
  EXPECT_EQ(code_of(ask(two, "CN=alice")), "no_leader") << "no proof passes in clear";
}

TEST(Replicas, AStatedCertificateCountsForOneRequestAndNotForLong) {
  Shared shared;
  const Forwarder forwarder(shared.live_key, shared.clock);
  HttpHead head{
      .method = "POST", .path = "/v1/groups", .query = {}, .authorization = {}, .remote_address = "192.0.2.7"};
  head.certificate = std::make_shared<const service::Certificate>(
      service::Certificate{.subject = "CN=alice,O=a b", .names = {"DNS:a", "URI:spiffe://x/y"}});
  head.passed_on = *forwarder.header_for(head, "body");
  const auto sender = forwarder.first_sender(head);
  ASSERT_TRUE(sender && sender->certificate);
  EXPECT_EQ(sender->address, "192.0.2.7");
  EXPECT_EQ(sender->certificate->subject, "CN=alice,O=a b");
  EXPECT_EQ(sender->certificate->names, head.certificate->names);
  EXPECT_TRUE(forwarder.is_body_of(*sender, "body"));
  EXPECT_FALSE(forwarder.is_body_of(*sender, "another"));
  HttpHead other = head;
  other.path = "/v1/plan";
  EXPECT_FALSE(forwarder.first_sender(other));
  const LiveKey foreign(*SigningKey::generate());
  EXPECT_FALSE(Forwarder(foreign, shared.clock).first_sender(head));
  shared.clock.advance(31s);
  EXPECT_FALSE(forwarder.first_sender(head));
  service::Certificate many;
  many.names.assign(64, "DNS:" + std::string(200, 'a'));
  head.certificate = std::make_shared<const service::Certificate>(many);
  EXPECT_FALSE(forwarder.header_for(head, ""));
}

TEST(Replicas, WithoutALeaderReadsComeFromACopyAndWritesAreRefused) {
  Shared shared;
  Manager one(shared), two(shared);
  one.turn();
  two.turn();
  ASSERT_EQ(one.ask_for_group().status, 200U);
  one.election().cut = true;
  two.election().cut = true;
  shared.clock.advance(kLease);
  two.turn();
  const HttpReply read = two.call("GET", "/v1/groups");
  EXPECT_EQ(read.status, 200U);
  EXPECT_TRUE(has_header(read, "Tributary-Copy"));
  EXPECT_EQ(json::parse(read.body)["groups"].size(), 1U);
  EXPECT_EQ(code_of(two.ask_for_group()), "no_leader");
  const std::string tokens = "/v1/groups/" + std::to_string(shared.records->groups.begin()->first) + "/tokens";
  EXPECT_EQ(code_of(two.call("GET", tokens, kJob)), "no_leader") << "a manager that does not lead signs no token";
  two.store_unreadable = true;
  shared.clock.advance(1min);
  EXPECT_EQ(two.call("GET", "/v1/groups").status, 200U) << "the copy before";
}

TEST(Replicas, WithoutALeaderAReaderOfEventsKeepsItsPlace) {
  Shared shared;
  Manager one(shared), two(shared);
  one.turn();
  two.turn();
  const std::string begin = two.ask_for_events().body;
  EXPECT_THAT(begin, testing::StartsWith("retry: 1000\nid: "));
  const std::string known = begin.substr(16, begin.find("\n\n") - 16);
  ASSERT_EQ(one.ask_for_group().status, 200U);
  EXPECT_THAT(two.ask_for_events(known).body, HasSubstr("event: group-made\n"));
  one.election().cut = true;
  two.election().cut = true;
  shared.clock.advance(kLease);
  one.turn();
  two.turn();
  for (Manager* manager : {&one, &two}) {
    const HttpReply answer = manager->ask_for_events(known);
    EXPECT_EQ(answer.status, 200U) << "a browser's EventSource does not ask again after an error";
    EXPECT_EQ(answer.body, "retry: 1000\n: no manager leads\n\n");
    EXPECT_EQ(answer.flow, nullptr);
    EXPECT_EQ(json::parse(manager->call("GET", "/v1/events").body)["events"].size(), 0U);
  }
  shared.leader.reset();
  two.election().cut = false;
  two.turn();
  ASSERT_TRUE(two.member().leads());
  EXPECT_THAT(*two.ask_for_events(known).flow->next(), HasSubstr("event: missed\n"));
}

TEST(Replicas, ALeaderThatCannotBeReachedIsNotWaitedFor) {
  Shared shared;
  Manager two(shared);
  shared.leader = LeaderSeen{"http://127.0.0.1:1", 9};
  two.turn();
  EXPECT_EQ(code_of(two.ask_for_group()), "no_leader");
  const HttpReply metrics = two.call("GET", "/metrics");
  EXPECT_THAT(metrics.body, HasSubstr("tributary_manager_requests_passed_on_total{outcome=\"failed\"} 1"));
  EXPECT_THAT(metrics.body, HasSubstr("tributary_manager_leader 0"));
}

TEST(Replicas, ABoundedNumberOfRequestsIsPassedOnAtATime) {
  Shared shared;
  Manager one(shared), two(shared, nullptr, {.requests_max = 1});
  one.turn();
  two.turn();
  EXPECT_TRUE(has_header(two.call("GET", "/v1/groups"), "Tributary-Copy")) << "reads, which need no token, get half";
  EXPECT_EQ(two.ask_for_group().status, 200U);
  Manager three(shared, nullptr, {.requests_max = 0});
  three.turn();
  EXPECT_EQ(code_of(three.ask_for_group()), "no_leader");
}

TEST(Replicas, TheNextLeaderKnowsWhatTheOneBeforeWrote) {
  Shared shared;
  Manager one(shared), two(shared);
  one.turn();
  ASSERT_EQ(one.ask_for_group().status, 200U);
  const std::uint64_t first = shared.records->groups.begin()->first;
  shared.leader.reset();
  two.turn();
  EXPECT_EQ(two.call("GET", "/v1/groups/" + std::to_string(first)).status, 200U);
  ASSERT_EQ(two.ask_for_group().status, 200U);
  EXPECT_GT(shared.records->groups.rbegin()->first, first) << "no number is given twice";
}

class SecretsTest : public ::testing::Test {
 protected:
  /// The files of one manager, with secrets of their own.
  SecretFiles files(const std::string& name) {
    std::filesystem::create_directories(folder_.file(name));
    const auto in = [&](const char* file) { return folder_.file(name + "/" + file); };
    SecretFiles made{.paths = {.signing_key = in("signing.key"),
                               .aggregator_token = in("aggregator.token"),
                               .job_token = in("job.token")},
                     .identity_keys = in("identity.keys")};
    EXPECT_TRUE(load_or_make_secrets(made.paths).has_value());
    EXPECT_TRUE(add_identity_key(made.identity_keys).has_value());
    return made;
  }
  static std::string text_of(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  TemporaryFolder folder_;
  Shared shared_;
};

TEST_F(SecretsTest, OnlyHoldersOfTheSigningKeyCanReadThem) {
  const SharedSecrets secrets{.aggregator_token = "a", .job_token = "j", .identity_keys = "k"};
  const auto sealed = seal_secrets(shared_.key, secrets);
  ASSERT_TRUE(sealed.has_value());
  EXPECT_EQ(*open_secrets(shared_.key, *sealed), secrets);
  EXPECT_NE(*sealed, *seal_secrets(shared_.key, secrets));
  const SigningKey other = std::move(*SigningKey::generate());
  EXPECT_EQ(open_secrets(other, *sealed).error().code, Errc::denied);
  std::string changed = *sealed;
  changed[20] = changed[20] == 'A' ? 'B' : 'A';
  EXPECT_EQ(open_secrets(shared_.key, changed).error().code, Errc::denied);
  EXPECT_EQ(open_secrets(shared_.key, "AAAA").error().code, Errc::corrupt);
}

TEST_F(SecretsTest, AllManagersTakeTheSecretsOfTheFirstLeader) {
  const SecretFiles first = files("first"), second = files("second");
  ASSERT_NE(text_of(first.paths.job_token), text_of(second.paths.job_token));
  Manager one(shared_), two(shared_);
  one.turn();
  SecretKeeper of_one(first, shared_.live_key), of_two(second, shared_.live_key);
  const auto cluster = one.member().cluster();
  ASSERT_TRUE(of_one.begin(*cluster, one.api()).has_value());
  const std::string replaced = text_of(second.identity_keys);
  ASSERT_TRUE(of_two.take_over(cluster->kept(kSharedSecretsKey), &two.api()).has_value());
  EXPECT_EQ(text_of(first.paths.job_token), text_of(second.paths.job_token));
  EXPECT_EQ(text_of(first.paths.aggregator_token), text_of(second.paths.aggregator_token));
  EXPECT_EQ(text_of(first.identity_keys), text_of(second.identity_keys));
  EXPECT_EQ(text_of(second.identity_keys + ".replaced"), replaced) << "no key is lost";
  EXPECT_FALSE(of_two.files_differ());
}

TEST_F(SecretsTest, AChangeOfKeysOnTheLeaderReachesAllManagers) {
  const SecretFiles first = files("first"), second = files("second");
  Manager one(shared_), two(shared_);
  one.turn();
  two.turn();
  SecretKeeper of_one(first, shared_.live_key), of_two(second, shared_.live_key);
  const auto cluster = one.member().cluster();
  ASSERT_TRUE(of_one.begin(*cluster, one.api()).has_value());
  ASSERT_TRUE(of_two.take_over(cluster->kept(kSharedSecretsKey), &two.api()).has_value());

  ASSERT_TRUE(add_identity_key(first.identity_keys).has_value());
  const std::int64_t now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  const auto token = load_identity_keys(first.identity_keys)
                         ->sign({.id = "id",
                                 .name = "r",
                                 .role = Role::tenant,
                                 .tenant = "t",
                                 .from = now,
                                 .until = now + 100,
                                 .life = 100,
                                 .renewable_until = now + 100});
  ASSERT_TRUE(token.has_value()) << token.error().message;
  const auto status = [&](Manager& manager) {
    return manager.call("POST", "/v1/groups", *token, {{"job", "j"}, {"ranks", {"a", "b"}}}).status;
  };
  EXPECT_EQ(status(two), 401U);
  ASSERT_TRUE(of_one.publish(*cluster, one.api()).has_value());
  EXPECT_EQ(status(one), 200U);
  ASSERT_TRUE(of_two.take_over(cluster->kept(kSharedSecretsKey), &two.api()).has_value());
  EXPECT_EQ(status(two), 200U) << "manager two accepts the request, and manager one leads";
}

TEST_F(SecretsTest, AChangeOfTheSigningKeyReachesTheManagersThatHaveIt) {
  const SecretFiles first = files("first"), second = files("second");
  Manager one(shared_), two(shared_);
  one.turn();
  LiveKey key_of_one(shared_.key), key_of_two(shared_.key), key_of_three(shared_.key);
  SecretKeeper of_one(first, key_of_one), of_two(second, key_of_two), of_three(second, key_of_three);
  const auto cluster = one.member().cluster();
  ASSERT_TRUE(of_one.begin(*cluster, one.api()).has_value());
  const std::string before = cluster->kept(kSharedSecretsKey);
  ASSERT_TRUE(of_two.take_over(before, &two.api()).has_value());

  const SigningKey next = std::move(*SigningKey::generate());
  key_of_two.offer(next);
  EXPECT_TRUE(of_two.take_over(before, &two.api()).has_value());
  EXPECT_EQ(key_of_two.now()->public_key(), shared_.key.public_key()) << "the leader has the old key";
  ASSERT_TRUE(of_one.change_key(*cluster).has_value());
  EXPECT_EQ(cluster->kept(kSharedSecretsKey), before) << "the leader's file has no other key";

  key_of_one.offer(next);
  ASSERT_TRUE(of_one.change_key(*cluster).has_value());
  EXPECT_EQ(key_of_one.now()->public_key(), next.public_key());
  EXPECT_EQ(cluster->signing().now()->signing.public_key(), next.public_key());
  const std::string after = cluster->kept(kSharedSecretsKey);
  EXPECT_EQ(open_secrets(shared_.key, after).error().code, Errc::denied) << "the old key opens nothing any more";
  ASSERT_TRUE(of_two.take_over(after, &two.api()).has_value());
  EXPECT_EQ(key_of_two.now()->public_key(), next.public_key());
  EXPECT_EQ(key_of_two.next(), nullptr);

  const auto refused = of_three.take_over(after, &two.api());
  EXPECT_EQ(refused.error().code, Errc::denied) << "this manager's file has the old key";
  EXPECT_THAT(refused.error().message, HasSubstr("another signing.key"));
  key_of_three.offer(*SigningKey::generate());
  EXPECT_FALSE(of_three.take_over(after, &two.api()).has_value());
  key_of_three.offer(next);
  EXPECT_TRUE(of_three.take_over(after, &two.api()).has_value());
}

TEST_F(SecretsTest, ALeaderWithoutItsStoreKeepsItsSigningKey) {
  const SecretFiles first = files("first");
  Manager one(shared_);
  one.turn();
  LiveKey key(shared_.key);
  SecretKeeper keeper(first, key);
  const auto cluster = one.member().cluster();
  ASSERT_TRUE(keeper.begin(*cluster, one.api()).has_value());
  shared_.records->full = true;
  key.offer(*SigningKey::generate());
  EXPECT_FALSE(keeper.change_key(*cluster).has_value());
  EXPECT_EQ(key.now()->public_key(), shared_.key.public_key());
  EXPECT_EQ(cluster->signing().now()->signing.public_key(), shared_.key.public_key());
}

TEST(EtcdUrl, NamesMembersAndPrefix) {
  const auto url = parse_etcd_url("etcd://a,b:1234,[::1]:9/x/y/");
  ASSERT_TRUE(url.has_value()) << url.error().message;
  EXPECT_THAT(url->endpoints, ::testing::ElementsAre("http://a", "http://b:1234", "http://[::1]:9"));
  EXPECT_EQ(url->prefix, "/x/y/");
  EXPECT_EQ(parse_etcd_url("etcd://a")->prefix, "/tributary/");
  EXPECT_THAT(parse_etcd_url("etcds://a,b:1")->endpoints, ::testing::ElementsAre("https://a", "https://b:1"));
  for (const char* bad :
       {"", "etcds://", "https://a", "a:2379", "http://a:2379", "etcd://", "etcd://a,,b", "etcd://a:0", "etcd://a/p q"})
    EXPECT_EQ(parse_etcd_url(bad).error().code, Errc::bad_config) << bad;
}

}  // namespace
}  // namespace tributary::manager
