#include "io/hub_cache.h"

#include <array>

#include "io/checkpoint.h"
#include "testing/broken_files.h"

namespace octet {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kCommit(40, 'a');
const std::string kOther(40, 'b');

class HubCacheTest : public testing::Test {
 protected:
  fs::path root() const { return folder_.path() / "hub"; }
  fs::path repository() const { return root() / "models--org--name"; }
  fs::path snapshot(const std::string& commit = kCommit) const {
    return repository() / "snapshots" / commit;
  }

  void add_ref(const std::string& name, const std::string& text) const {
    const fs::path ref = repository() / "refs" / name;
    fs::create_directories(ref.parent_path());
    write_bytes(ref, text);
  }
  // A sound model in the snapshot: links into blobs/, as the hub's client makes them.
  void add_model(int shards = 1, bool links = true) const {
    TinyCheckpoint model(1);
    for (int i = 0; i < 4; ++i) {
      model.add_normal("t" + std::to_string(i), DType::BF16, {4, 4}, 1);
    }
    model.write(snapshot(), shards);
    if (links) {
      fs::create_directories(repository() / "blobs");
      for (const auto& entry : fs::directory_iterator(snapshot())) {
        const fs::path blob = repository() / "blobs" / ("etag-" + entry.path().filename().string());
        fs::rename(entry.path(), blob);
        fs::create_symlink(fs::path("../../blobs") / blob.filename(), entry.path());
      }
    }
  }
  fs::path resolve(const std::string& text, const std::optional<std::string>& revision = {}) const {
    const std::array roots{root()};
    return resolve_model(text, revision, roots);
  }
  // Message and hint of a refusal.
  std::string refusal(const std::string& text,
                      const std::optional<std::string>& revision = {}) const {
    return said([&] { resolve(text, revision); });
  }
  static std::string said(const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::BadInput);
      return error.message() + "\n" + error.hint();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
  }

  TinyFolder folder_;
};

TEST(HubName, HasTwoPartsAndPerhapsARevision) {
  EXPECT_EQ(parse_hub_name("org/name"), (HubName{"org/name", std::nullopt}));
  EXPECT_EQ(parse_hub_name("RedHatAI/Qwen3-0.6B-FP8_x"),
            (HubName{"RedHatAI/Qwen3-0.6B-FP8_x", std::nullopt}));
  EXPECT_EQ(parse_hub_name("org/name@v1.0"), (HubName{"org/name", "v1.0"}));
  EXPECT_EQ(parse_hub_name("org/name@refs/pr/1"), (HubName{"org/name", "refs/pr/1"}));
}

TEST(HubName, CannotLeadOutOfTheCache) {
  for (const char* text : {"",
                           "name",
                           "/",
                           "org/",
                           "/name",
                           "../name",
                           "org/..",
                           "a/b/c",
                           "./name",
                           "org/./name",
                           "org/na me",
                           "org/na\nme",
                           "org--x/name",
                           "org/na..me",
                           "-org/name",
                           "org/name@",
                           "org/name@..",
                           "org/name@../../x",
                           "org/name@/x",
                           "org/name@a//b",
                           "org/name@.x",
                           "org/name@-x",
                           "org/name@a@b",
                           "org/name@a\\b",
                           "~/name",
                           "org/.name"}) {
    EXPECT_EQ(parse_hub_name(text), std::nullopt) << text;
  }
}

TEST_F(HubCacheTest, FollowsARefToItsSnapshot) {
  add_model();
  add_ref("main", kCommit);
  add_ref("v1", kOther + "\n");
  add_ref("refs/pr/1", kCommit);
  fs::create_directories(snapshot(kOther));
  EXPECT_EQ(resolve("org/name"), snapshot());
  EXPECT_EQ(resolve("org/name@main"), snapshot());
  EXPECT_EQ(resolve("org/name@v1"), snapshot(kOther));
  EXPECT_EQ(resolve("org/name", "v1"), snapshot(kOther));
  EXPECT_EQ(resolve("org/name@v1", "v1"), snapshot(kOther));
  EXPECT_EQ(resolve("org/name@refs/pr/1"), snapshot());
  EXPECT_EQ(resolve("org/name@" + kOther), snapshot(kOther));
}

TEST_F(HubCacheTest, OpensLinksAndPlainCopies) {
  for (const bool links : {true, false}) {
    fs::remove_all(root());
    add_model(1, links);
    add_ref("main", kCommit);
    EXPECT_EQ(Checkpoint::open(resolve("org/name")).tensors().size(), 4U);
  }
}

TEST_F(HubCacheTest, TakesTheFirstRootThatHasTheRepository) {
  add_model();
  add_ref("main", kCommit);
  const std::array roots{folder_.path() / "empty", root()};
  EXPECT_EQ(resolve_model("org/name", {}, roots), snapshot());
}

TEST_F(HubCacheTest, WhatLiesOnDiskWins) {
  add_model();
  add_ref("main", kCommit);
  EXPECT_EQ(resolve(root().string()), root());
  const fs::path here = fs::current_path();
  fs::create_directories(folder_.path() / "org" / "name");
  fs::current_path(folder_.path());
  EXPECT_EQ(resolve("org/name"), "org/name");
  EXPECT_THAT(refusal("org/name", "v1"), HasSubstr("is a file or folder and has no revisions"));
  fs::current_path(here);
}

TEST_F(HubCacheTest, LeavesOtherTextsToOpening) {
  EXPECT_EQ(resolve("./missing/model"), "./missing/model");
  EXPECT_EQ(resolve("model"), "model");
  EXPECT_THAT(refusal("model", "v1"), HasSubstr("is not the name of a model of the hub"));
}

TEST_F(HubCacheTest, ANameThatIsTooLongForAPathIsRefusedInShort) {
  for (const std::string& text :
       {"a/b@" + std::string(5000, 'x'), std::string(300, 'y'), "org/" + std::string(5000, '\n')}) {
    const std::string message = refusal(text);
    EXPECT_THAT(message, AllOf(HasSubstr(fmt::format("of {} bytes is too long", text.size())),
                               HasSubstr("ORG/NAME[@REVISION]"), Not(HasSubstr("/\n"))));
    EXPECT_LT(message.size(), 600U);
  }
}

TEST_F(HubCacheTest, SaysHowToFetchAModelThatIsNotThere) {
  EXPECT_THAT(refusal("org/name"),
              AllOf(HasSubstr("model org/name: no such folder, and not in the Hugging Face cache"),
                    HasSubstr((root() / "models--org--name").string()),
                    HasSubstr("`hf download org/name --revision main`")));
  EXPECT_THAT(refusal("org/name@v2"), HasSubstr("`hf download org/name --revision v2`"));
  EXPECT_THAT(said([] { resolve_model("org/name", {}, {}); }),
              HasSubstr("HOME, HF_HOME and HF_HUB_CACHE are not set"));
}

TEST_F(HubCacheTest, ListsRefsAndSnapshotsWhenTheRevisionIsMissing) {
  add_model();
  fs::create_directories(snapshot(kOther));
  add_ref("v1", kCommit);
  add_ref("refs/pr/1", kOther);
  EXPECT_THAT(refusal("org/name"),
              AllOf(HasSubstr("has no refs/main; refs there: refs/pr/1, v1; snapshots there: " +
                              kCommit + ", " + kOther),
                    HasSubstr("`hf download org/name --revision main`"),
                    HasSubstr("or name one that is there: org/name@" + kCommit)));
  EXPECT_THAT(refusal("org/name@" + std::string(40, 'c')),
              HasSubstr("has no snapshots/" + std::string(40, 'c')));
}

TEST_F(HubCacheTest, RefusesARefThatHoldsNoCommit) {
  add_model();
  add_ref("main", "../../../../etc");
  EXPECT_THAT(refusal("org/name"),
              HasSubstr("has refs/main with \"../../../../etc\" inside, expected a commit"));
  add_ref("main", std::string(100'000, 'a'));
  EXPECT_THAT(refusal("org/name"), HasSubstr("has 100000 bytes, expected at most 4096"));
}

TEST_F(HubCacheTest, RefusesRevisionsThatContradictOrCannotBe) {
  add_model();
  add_ref("main", kCommit);
  EXPECT_THAT(refusal("org/name@v1", "v2"), HasSubstr("names revision v1, --revision says v2"));
  EXPECT_THAT(refusal("org/name", "../x"),
              HasSubstr("--revision \"../x\" is not a branch, a tag or a commit"));
}

TEST_F(HubCacheTest, NamesAMissingShardAndTheCommandThatFetchesIt) {
  add_model(3);
  add_ref("main", kCommit);
  fs::remove(repository() / "blobs" / "etag-model-00002-of-00003.safetensors");  // a dangling link
  write_bytes(repository() / "blobs" / "etag-2.incomplete", "half");
  EXPECT_THAT(said([&] { Checkpoint::open(resolve("org/name")); }),
              AllOf(HasSubstr("1 of them are missing: model-00002-of-00003.safetensors"),
                    HasSubstr("`hf download org/name model-00002-of-00003.safetensors --revision " +
                              kCommit + "`"),
                    HasSubstr("1 download is not finished: blobs/etag-2.incomplete")));
}

TEST_F(HubCacheTest, NamesShardsByNumberWhereTheIndexIsMissingToo) {
  add_model(3);
  add_ref("main", kCommit);
  fs::remove(snapshot() / "model.safetensors.index.json");
  fs::remove(snapshot() / "model-00001-of-00003.safetensors");
  fs::remove(snapshot() / "model-00003-of-00003.safetensors");
  EXPECT_THAT(said([&] { Checkpoint::open(resolve("org/name")); }),
              AllOf(HasSubstr("missing: model-00001-of-00003.safetensors, model-00003-of"),
                    HasSubstr("`hf download org/name model-00001-of-00003.safetensors "
                              "model-00003-of-00003.safetensors --revision")));
}

TEST_F(HubCacheTest, NamesAMissingConfigAndMissingWeights) {
  add_model();
  add_ref("main", kCommit);
  fs::remove(snapshot() / "config.json");
  EXPECT_THAT(said([&] { Checkpoint::open(resolve("org/name")); }),
              AllOf(HasSubstr("has no config.json"),
                    HasSubstr("`hf download org/name config.json --revision " + kCommit + "`")));
  fs::remove(snapshot() / "model.safetensors");
  EXPECT_THAT(said([&] { Checkpoint::open(resolve("org/name")); }),
              AllOf(HasSubstr("holds no .safetensors file"),
                    HasSubstr("`hf download org/name --revision " + kCommit + "`")));
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"}) {
    fs::create_directories(repository() / ".no_exist" / kCommit);
    write_bytes(repository() / ".no_exist" / kCommit / name, "");
  }
  EXPECT_THAT(said([&] { Checkpoint::open(resolve("org/name")); }),
              AllOf(HasSubstr("org/name has none to fetch"), Not(HasSubstr("hf download"))));
}

TEST_F(HubCacheTest, FetchesWhatALinkOfTheSnapshotNoLongerLeadsTo) {
  for (const char* name : {"model.safetensors", "config.json", "tokenizer_config.json"}) {
    fs::remove_all(root());
    add_model();
    add_ref("main", kCommit);
    if (!fs::exists(snapshot() / name)) {
      fs::create_symlink("../../blobs/none", snapshot() / name);
    } else {
      fs::remove(repository() / "blobs" / ("etag-" + std::string(name)));
    }
    const std::string command =
        fmt::format("`hf download org/name {} --revision {}`", name, kCommit);
    EXPECT_THAT(said([&] { Checkpoint::open(resolve("org/name")); }),
                AllOf(HasSubstr(name), HasSubstr(command)));
    const std::string file = (snapshot() / name).string();
    EXPECT_THAT(said([&] { Checkpoint::open(resolve(file)); }), HasSubstr(command));
    EXPECT_THAT(said([&] { check_fetched(file); }),
                AllOf(HasSubstr(file + " is not there: its blob was removed"), HasSubstr(command)));
  }
}

TEST_F(HubCacheTest, FetchesEveryNumberedShardWhoseBlobIsGone) {
  add_model(3);
  add_ref("main", kCommit);
  fs::remove(snapshot() / "model.safetensors.index.json");
  for (const char* name : {"etag-model-00001-of-00003", "etag-model-00003-of-00003"}) {
    fs::remove(repository() / "blobs" / (std::string(name) + ".safetensors"));
  }
  EXPECT_THAT(said([&] { Checkpoint::open(resolve("org/name")); }),
              AllOf(HasSubstr("holds 2 links to what is not there: model-00001-of-00003"),
                    HasSubstr("`hf download org/name model-00001-of-00003.safetensors "
                              "model-00003-of-00003.safetensors --revision " +
                              kCommit + "`")));
}

TEST_F(HubCacheTest, FetchesATruncatedBlobAnew) {
  const auto cut = [&](const std::string& name, uintmax_t to) {
    fs::remove_all(root());
    add_model(2);
    add_ref("main", kCommit);
    fs::resize_file(repository() / "blobs" / ("etag-" + name), to);
    EXPECT_THAT(said([&] { Checkpoint::open(resolve("org/name")); }),
                HasSubstr("`hf download org/name " + name + " --revision " + kCommit +
                          " --force-download`"))
        << to;
  };
  const std::string shard = "model-00001-of-00002.safetensors";
  for (const uintmax_t to : {0, 20, 200}) cut(shard, to);
  cut("config.json", 1);
  cut("model.safetensors.index.json", 5);
  EXPECT_EQ(refetch_hint("x/model.safetensors", "otherwise"), "otherwise");
}

TEST_F(HubCacheTest, AnErrorThatNamesAFileOfASnapshotSaysHowToFetchThatFileAgain) {
  const std::array<std::string, 2> files{"tokenizer.json", "tokenizer_config.json"};
  const Error error(Code::BadInput, "tokenizer_config.json: not JSON", "look");
  const Error told = with_refetch(error, snapshot(), files);
  EXPECT_EQ(told.message(), error.message());
  EXPECT_EQ(told.hint(),
            "look; a damaged file is fetched again with `hf download org/name "
            "tokenizer_config.json --revision " +
                kCommit + " --force-download`");
  EXPECT_EQ(with_refetch(error, folder_.path(), files).hint(), "look");
  EXPECT_EQ(with_refetch({Code::BadInput, "another"}, snapshot(), files).hint(), "");
  const Error disk(Code::Environment, "tokenizer_config.json: the disk failed");
  EXPECT_EQ(with_refetch(disk, snapshot(), files).hint(), "");
}

TEST_F(HubCacheTest, NamesALinkThatLeadsNowhereOutsideTheCacheToo) {
  TinyCheckpoint model(1);
  model.add_normal("t", DType::BF16, {4, 4}, 1);
  const fs::path dir = folder_.path() / "plain";
  model.write(dir, 1);
  fs::create_symlink("gone", dir / "generation_config.json");
  EXPECT_THAT(said([&] { Checkpoint::open(dir); }),
              AllOf(HasSubstr("holds 1 link to what is not there: generation_config.json"),
                    HasSubstr("restore what they lead to")));
  fs::remove(dir / "generation_config.json");
  fs::remove(dir / "model.safetensors");
  for (const fs::path& circle : {folder_.path() / "circle", dir / "model.safetensors"}) {
    fs::create_symlink(circle.filename(), circle);
    try {
      Checkpoint::open(circle.parent_path() == dir ? dir : circle);
      ADD_FAILURE() << circle;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::Environment);
      EXPECT_THAT(error.hint(), HasSubstr("its symbolic links lead in a circle"));
    }
  }
}

TEST_F(HubCacheTest, QuotesWhatAShellWouldRead) {
  const std::array<std::string, 2> files{"a b.safetensors", "it's;rm"};
  EXPECT_EQ(download_command("org/name", files, "main"),
            "hf download org/name 'a b.safetensors' 'it'\\''s;rm' --revision main");
}

TEST_F(HubCacheTest, KnowsWhereASnapshotComesFrom) {
  add_model();
  const auto origin = hub_origin(snapshot() / "");
  ASSERT_TRUE(origin.has_value());
  EXPECT_EQ(origin->repo, "org/name");
  EXPECT_EQ(origin->commit, kCommit);
  EXPECT_EQ(origin->repository, repository());
  EXPECT_EQ(model_name(snapshot()), "org/name");
  EXPECT_EQ(model_name("x/y"), "y");
  EXPECT_EQ(model_name("x/y/"), "y");
  EXPECT_FALSE(hub_origin(root()).has_value());
  EXPECT_FALSE(hub_origin("/models--/snapshots/x").has_value());
  EXPECT_FALSE(hub_origin("/models--a--b/other/x").has_value());
}

}  // namespace
}  // namespace octet
