#include "aggregator/daemon/files.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace tributary::aggregator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Files : public ::testing::Test {
 protected:
  Files() : folder_(::testing::TempDir() + "aggregator-files-" + std::to_string(::getpid())) {
    std::filesystem::create_directory(folder_);
  }
  ~Files() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }
  std::string folder_;
};

TEST_F(Files, ReadsATokenWithoutItsLineEnd) {
  EXPECT_EQ(*read_token(file("token", "secret\n")), "secret");
  EXPECT_EQ(*read_token(file("group", "secret", 0640)), "secret") << "the service's group may read it";
  EXPECT_EQ(*read_token(""), "") << "no file is asked for";
}

TEST_F(Files, ATokenThatOthersMayUseIsRefusedWithWhatToDo) {
  for (const mode_t mode : {0644U, 0604U, 0620U, 0660U, 0666U, 0602U}) {
    const auto token = read_token(file("token", "secret\n", mode));
    ASSERT_FALSE(token) << std::oct << mode;
    EXPECT_EQ(token.error().code, Errc::bad_config);
    EXPECT_THAT(token.error().message,
                HasSubstr("other users may use the secret; run: chmod 600 " + folder_ + "/token"));
  }
}

TEST_F(Files, ATokenThatCannotBeReadIsToldWithTheReason) {
  EXPECT_THAT(read_token(folder_ + "/none").error().message,
              HasSubstr("cannot be read: No such file or directory; copy it from the manager"));
  EXPECT_THAT(read_token(folder_).error().message, HasSubstr("Is a directory"));
  EXPECT_THAT(read_token(file("empty", "\n")).error().message, HasSubstr("is empty"));
  EXPECT_THAT(read_token(file("long", std::string(5000, 'x'))).error().message, HasSubstr("longer than 4096 bytes"));
}

TEST_F(Files, KeepsTheIdentity) {
  const std::string path = folder_ + "/manager-key";
  EXPECT_EQ(*read_identity(path), std::nullopt);
  EXPECT_EQ(*read_identity(""), std::nullopt);
  Identity identity{.name = "leaf-1", .manager_key = SigningKey::generate()->public_key()};
  ASSERT_TRUE(write_identity(path, identity));
  EXPECT_EQ(*read_identity(path), identity);
  identity.name = "leaf-2";
  const auto exchange = ExchangeKey::generate().value();
  identity.manager_exchange = exchange.public_key();
  std::ranges::copy(exchange.private_bytes(), identity.exchange_private.emplace().begin());
  ASSERT_TRUE(write_identity(path, identity));
  EXPECT_EQ(*read_identity(path), identity);
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
  EXPECT_TRUE(write_identity("", identity)) << "an aggregator need not keep the key";
  EXPECT_THAT(write_identity(folder_ + "/none/key", identity).error().message, HasSubstr("No such file or directory"));
}

TEST_F(Files, ADamagedOrExposedIdentityIsRefused) {
  const std::string good = "leaf-1 " + to_base64(SigningKey::generate()->public_key());
  for (const std::string& text :
       {std::string(), std::string("leaf-1"), std::string(" x"), std::string("leaf-1 ????"), std::string("leaf-1 AAAA"),
        std::string(good, 0, good.size() - 4), std::string(64, 'n') + " AAAA"}) {
    const auto identity = read_identity(file("key", text));
    ASSERT_FALSE(identity) << text;
    EXPECT_THAT(identity.error().message, HasSubstr("is damaged; remove it"));
  }
  EXPECT_THAT(read_identity(file("key", good, 0666)).error().message,
              AllOf(HasSubstr("mode 0666"), HasSubstr("chmod 600")));
  EXPECT_TRUE(read_identity(file("key", good, 0644))) << "the key is public, so all may read it";
  const std::string secret = good + good.substr(good.find(' ')) + good.substr(good.find(' '));
  EXPECT_TRUE(read_identity(file("key", secret)));
  EXPECT_THAT(read_identity(file("key", secret, 0640)).error().message, HasSubstr("other users may read"));
}

}  // namespace
}  // namespace tributary::aggregator
