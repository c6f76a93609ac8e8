// Identity tokens: which tokens the manager believes, and which it does not.
#include "tree-manager/identity/identity_token.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/manager/temporary_folder.h"
#include "tree-manager/identity/authenticator.h"
#include "tree-manager/identity/key_file.h"

namespace tributary::manager {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kNow = 1'800'000'000;

IdentityKeys keys_of(const std::string& text) {
  auto keys = IdentityKeys::parse(text);
  EXPECT_TRUE(keys.has_value()) << keys.error().message;
  return std::move(*keys);
}

std::string line(const std::string& name, char digit) {
  return name + " " + std::string(64, digit) + "\n";
}

IdentityClaims claims() {
  return {.id = "0011223344556677",
          .name = "alice",
          .role = Role::tenant,
          .tenant = "physics",
          .job = "train",
          .from = kNow - 60,
          .until = kNow + 100,
          .life = 100,
          .renewable_until = kNow + 1000};
}

std::string why_refused(const IdentityKeys& keys, std::string_view token, std::int64_t now = kNow) {
  const auto verified = keys.verify(token, now);
  if (verified) return "";
  EXPECT_EQ(verified.error().code, Errc::denied);
  return verified.error().message;
}

TEST(IdentityToken, SaysWhatWasSigned) {
  const IdentityKeys keys = keys_of(line("a", '1'));
  for (IdentityClaims wanted : {claims(), claims()}) {
    wanted.scopes = Scopes(Scope::groups, Scope::read);
    const auto token = keys.sign(wanted);
    ASSERT_TRUE(token.has_value()) << token.error().message;
    EXPECT_TRUE(looks_like_identity_token(*token));
    const auto read = keys.verify(*token, kNow);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(*read, wanted);
    EXPECT_EQ(*read_identity_token(*token), wanted);
  }
}

TEST(IdentityToken, EveryOtherCharacterIsAForgery) {
  const IdentityKeys keys = keys_of(line("a", '1'));
  const std::string token = *keys.sign(claims());
  for (std::size_t at = 0; at < token.size(); ++at) {
    for (const char other : {'A', 'B', '.', '-', '=', '\0'}) {
      if (token[at] == other) continue;
      std::string forged = token;
      forged[at] = other;
      EXPECT_NE(why_refused(keys, forged), "") << forged;
    }
    EXPECT_NE(why_refused(keys, token.substr(0, at)), "") << "cut short at " << at;
    EXPECT_NE(why_refused(keys, token.substr(0, at) + token.substr(at + 1)), "");
  }
  EXPECT_NE(why_refused(keys, token + "A"), "");
  EXPECT_NE(why_refused(keys, token + "="), "");
  EXPECT_NE(why_refused(keys, ""), "");
  EXPECT_NE(why_refused(keys, std::string(1 << 20, 'A')), "") << "huge";
  EXPECT_NE(why_refused(keys, "trb1.a." + std::string(1 << 20, 'A') + ".A"), "") << "huge";
  EXPECT_NE(why_refused(keys, "trb1..."), "");
}

TEST(IdentityToken, IsValidOnlyWithinItsTime) {
  const IdentityKeys keys = keys_of(line("a", '1'));
  const std::string token = *keys.sign(claims());
  EXPECT_THAT(why_refused(keys, token, kNow - 61), HasSubstr("becomes valid in 1 s"));
  EXPECT_EQ(why_refused(keys, token, kNow - 60), "");
  EXPECT_EQ(why_refused(keys, token, kNow + 99), "");
  EXPECT_THAT(why_refused(keys, token, kNow + 100), HasSubstr("expired 0 s ago"));
  EXPECT_THAT(why_refused(keys, token, INT64_MAX), HasSubstr("expired"));
}

TEST(IdentityToken, ATokenMayHaveTheLongestLife) {
  EXPECT_EQ(token_start(kNow, kNow + 100), kNow - kClockDifference);
  IdentityClaims longest = claims();
  longest.life = kTokenSecondsMax;
  longest.until = longest.renewable_until = kNow + kTokenSecondsMax;
  longest.from = token_start(kNow, longest.renewable_until);
  EXPECT_EQ(longest.from, kNow);
  EXPECT_TRUE(check(longest).has_value());
}

TEST(IdentityToken, ATokenOfAForeignKeyIsRefused) {
  const std::string token = *keys_of(line("a", '1')).sign(claims());
  EXPECT_THAT(why_refused(keys_of(line("b", '1')), token), HasSubstr("does not have"));
  EXPECT_THAT(why_refused(keys_of(line("a", '2')), token), HasSubstr("its seal is wrong"));
  EXPECT_NE(why_refused(IdentityKeys(), token), "");
  EXPECT_FALSE(IdentityKeys().sign(claims()).has_value());
}

TEST(IdentityToken, AKeyIsChangedWithoutABreak) {
  const std::string before = *keys_of(line("old", '1')).sign(claims());
  const IdentityKeys both = keys_of("# a comment\n" + line("new", '2') + "\n" + line("old", '1'));
  EXPECT_EQ(why_refused(both, before), "");
  const std::string after = *both.sign(claims());
  EXPECT_THAT(after, HasSubstr("trb1.new."));
  EXPECT_EQ(why_refused(keys_of(line("new", '2')), after), "");
  EXPECT_NE(why_refused(keys_of(line("new", '2')), before), "");
}

TEST(IdentityToken, ClaimsOutOfBoundsAreNotSigned) {
  const IdentityKeys keys = keys_of(line("a", '1'));
  const auto refused = [&](auto change) {
    IdentityClaims wrong = claims();
    change(wrong);
    return !keys.sign(wrong).has_value();
  };
  EXPECT_TRUE(refused([](IdentityClaims& c) { c.id = ""; }));
  EXPECT_TRUE(refused([](IdentityClaims& c) { c.name = "two words"; }));
  EXPECT_TRUE(refused([](IdentityClaims& c) { c.name = "\xff"; }));
  EXPECT_TRUE(refused([](IdentityClaims& c) { c.name = std::string(64, 'x'); }));
  EXPECT_TRUE(refused([](IdentityClaims& c) { c.tenant = ""; }));
  EXPECT_TRUE(refused([](IdentityClaims& c) { c.role = Role::reader; }));
  EXPECT_TRUE(refused([](IdentityClaims& c) { c.from = -1; }));
  EXPECT_TRUE(refused([](IdentityClaims& c) { c.until = c.from; }));
  EXPECT_TRUE(refused([](IdentityClaims& c) { c.renewable_until = c.until - 1; }));
  EXPECT_TRUE(refused([](IdentityClaims& c) { c.renewable_until = c.from + kTokenSecondsMax + 1; }));
  EXPECT_TRUE(refused([](IdentityClaims& c) { c.life = 0; }));
  EXPECT_FALSE(refused([](IdentityClaims&) {}));
}

TEST(IdentityKeys, NameTheLineThatHasNoKey) {
  for (const std::string& wrong :
       {std::string(), std::string("# nothing\n"), line("A", '1'), line("a", 'g'), "a " + std::string(63, '1') + "\n",
        line("a", '1') + line("a", '2'), std::string("a\n"), line(std::string(17, 'a'), '1'), line("a b", '1')}) {
    EXPECT_FALSE(IdentityKeys::parse(wrong).has_value()) << wrong;
  }
  EXPECT_THAT(IdentityKeys::parse(line("a", '1') + "b\n").error().message, HasSubstr("line 2"));
  std::string many;
  for (char c = 'a'; c <= 'q'; ++c) many += line(std::string(1, c), '1');
  EXPECT_FALSE(IdentityKeys::parse(many).has_value());
}

TEST(IdentityKeys, AFileThatOthersCanReadIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.file("identity.keys");
  EXPECT_FALSE(load_identity_keys(path).has_value());
  ASSERT_TRUE(add_identity_key(path).has_value());
  ASSERT_TRUE(add_identity_key(path).has_value());
  const auto keys = load_identity_keys(path);
  ASSERT_TRUE(keys.has_value()) << keys.error().message;
  EXPECT_EQ(keys->size(), 2U);
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  ::chmod(path.c_str(), 0640);
  EXPECT_THAT(load_identity_keys(path).error().message, HasSubstr("chmod 600"));
}

TEST(Revocations, AreKeptUntilTheirTokensHaveExpired) {
  Revocations revoked;
  ASSERT_TRUE(revoked.add("one", kNow + 10, kNow).has_value());
  ASSERT_TRUE(revoked.add("two", kNow + 100, kNow).has_value());
  auto again = Revocations::parse(revoked.text());
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->has("one"));
  ASSERT_TRUE(again->add("three", kNow + 100, kNow + 10).has_value());
  EXPECT_FALSE(again->has("one"));
  EXPECT_TRUE(again->has("two"));
  for (const char* wrong : {"[]", "{", "{\"a\":\"b\"}", "{\"a b\":1}", "{\"\":1}"}) {
    EXPECT_FALSE(Revocations::parse(wrong).has_value()) << wrong;
  }
}

class AuthenticatorTest : public ::testing::Test {
 protected:
  Proof look(const std::string& token, std::int64_t now = kNow) {
    return authenticator_.look("Bearer " + token, "192.0.2.7", now);
  }
  bool disk_full_ = false;
  std::string kept_;
  Authenticator authenticator_{{.aggregator_token = "shared-by-aggregators", .job_token = "shared-by-jobs"},
                               keys_of(line("a", '1')),
                               {},
                               [this](const std::string& text) -> Status {
                                 if (disk_full_) return fail(Errc::exhausted, "the disk is full");
                                 kept_ = text;
                                 return {};
                               }};
};

TEST_F(AuthenticatorTest, ATokenProvesTheIdentityOfItsHolder) {
  const Proof proof = look(*authenticator_.sign(claims()));
  ASSERT_TRUE(proof.identity.has_value()) << proof.why;
  EXPECT_EQ(proof.identity->name, "alice");
  EXPECT_EQ(proof.identity->roles, Roles(Role::tenant));
  EXPECT_EQ(proof.identity->tenant, "physics");
  EXPECT_EQ(proof.identity->job, "train");
  EXPECT_FALSE(proof.identity->old_secret);
}

TEST_F(AuthenticatorTest, OldSecretsKeepTheirRights) {
  EXPECT_EQ(look("shared-by-jobs").identity->roles, Roles(Role::tenant));
  EXPECT_EQ(look("shared-by-aggregators").identity->roles, Roles(Role::operator_, Role::aggregator));
  EXPECT_FALSE(look("shared-by-aggregators").identity->scopes.has(Scope::tokens))
      << "a reader of an aggregator's disk must not make tokens";
  EXPECT_FALSE(look("shared-by-job").identity.has_value());
  EXPECT_FALSE(look("").identity.has_value());
  EXPECT_FALSE(authenticator_.look("", "192.0.2.7", kNow).identity.has_value());
  EXPECT_FALSE(authenticator_.look("Basic shared-by-jobs", "192.0.2.7", kNow).identity.has_value());
  Authenticator none({}, keys_of(line("a", '1')), {}, [](const std::string&) { return Status{}; });
  EXPECT_FALSE(none.look("Bearer ", "192.0.2.7", kNow).identity.has_value()) << "an empty secret is none";
  EXPECT_FALSE(none.look("Bearer shared-by-jobs", "192.0.2.7", kNow).identity.has_value());
}

TEST_F(AuthenticatorTest, ARevokedTokenAndItsRenewalsAreRefused) {
  IdentityClaims renewed = claims();
  const std::string first = *authenticator_.sign(renewed);
  renewed.until += 100;
  const std::string second = *authenticator_.sign(renewed);
  disk_full_ = true;
  EXPECT_FALSE(authenticator_.revoke(renewed.id, kNow + kTokenSecondsMax, kNow).has_value());
  EXPECT_TRUE(look(first).identity.has_value()) << "an unsaved revocation does not count";
  disk_full_ = false;
  ASSERT_TRUE(authenticator_.revoke(renewed.id, kNow + kTokenSecondsMax, kNow).has_value());
  for (const std::string& token : {first, second}) EXPECT_EQ(look(token).why, "the token was revoked [token-revoked]");
  EXPECT_TRUE(Revocations::parse(kept_)->has(renewed.id));
}

TEST_F(AuthenticatorTest, AKeyThatIsTakenAwayEndsItsTokens) {
  const std::string token = *authenticator_.sign(claims());
  authenticator_.use_keys(keys_of(line("b", '2') + line("a", '1')));
  EXPECT_TRUE(look(token).identity.has_value());
  authenticator_.use_keys(keys_of(line("b", '2')));
  EXPECT_FALSE(look(token).identity.has_value());
}

}  // namespace
}  // namespace tributary::manager
