// `skein serve` as clients of OpenAI's API see it: answers, streams, log-probabilities, errors,
// keys, reloading, stopping.
#include <gmock/gmock.h>

#include <cmath>
#include <future>

#include "skein/base/text/json_text.h"
#include "tests/serve_client.h"

namespace skein {
namespace {

using testing::HasSubstr;
using Answer = ServeAnswer;
using Server = ServeProcess;

const TinyJob& job() {
  static const TinyJob made;
  return made;
}
const fs::path& model() {
  static const fs::path run = [] {
    job().trained("model", {"run.steps=30", "checkpoint.every_steps=10"});
    return job().run("model");
  }();
  return run;
}

// Most tests ask one server.
class Serve : public testing::Test {
 protected:
  static void SetUpTestSuite() { shared_ = std::make_unique<Server>(model()); }
  static void TearDownTestSuite() { shared_.reset(); }
  static const Server& server() { return *shared_; }

 private:
  static inline std::unique_ptr<Server> shared_;
};

TEST_F(Serve, ContinuesATextAsGenerateDoes) {
  const std::string generated = TinyJob::must({"generate", "--model", model().string(), "--prompt",
                                               "The", "--temperature", "0", "--max-tokens", "20"})
                                    .out;
  const Json json = server().completion(R"({"model": "model", "prompt": "The", "temperature": 0,
                                            "max_tokens": 20})");
  EXPECT_EQ("The" + json["choices"][0]["text"].get<std::string>() + "\n", generated);
  EXPECT_EQ(json["object"], "text_completion");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(json["usage"]["completion_tokens"], 20);
}

TEST_F(Serve, NamesTokensByTheirIdsIfAsked) {
  const Json json = server().completion(
      R"({"prompt": [1, 70, 80], "max_tokens": 2, "temperature": 0, "logprobs": 2, "echo": true,
          "return_tokens_as_token_ids": true})");
  const Json& logprobs = json["choices"][0]["logprobs"];
  ASSERT_EQ(logprobs["tokens"].size(), 5U);
  EXPECT_EQ(logprobs["tokens"][1], "token_id:70");
  EXPECT_EQ(logprobs["tokens"][2], "token_id:80");
  const std::string made = logprobs["tokens"][4];
  EXPECT_TRUE(made.starts_with("token_id:")) << made;
  EXPECT_TRUE(logprobs["top_logprobs"][4].contains(made));
  // Everything else is as without.
  const std::string body = R"({"prompt": "The", "max_tokens": 20, "temperature": 0, "logprobs": 1,
                               "echo": true, "stop": ["zzz"])";
  Json named = server().completion(body + R"(, "return_tokens_as_token_ids": true})")["choices"][0];
  Json plain = server().completion(body + "}")["choices"][0];
  EXPECT_EQ(named["text"], plain["text"]);
  EXPECT_EQ(named["logprobs"]["text_offset"], plain["logprobs"]["text_offset"]);
  EXPECT_EQ(named["logprobs"]["token_logprobs"], plain["logprobs"]["token_logprobs"]);
  EXPECT_EQ(named["logprobs"]["tokens"].size(), plain["logprobs"]["tokens"].size());
  const Answer refused =
      server().ask("/v1/chat/completions", R"({"messages": [{"role": "user", "content": "a"}],
                                               "return_tokens_as_token_ids": true})");
  EXPECT_EQ(refused.status, 400);
}

// What lm-evaluation-harness reads: N tokens of the prompt and one more.
TEST_F(Serve, ScoresAPromptAsScoreDoes) {
  const Json json = server().completion(
      R"({"prompt": [[1, 70, 80, 90, 100], [1, 75]], "max_tokens": 1, "temperature": 0,
          "logprobs": 1, "echo": true})");
  const fs::path tokens = job().folder / "tokens.json";
  std::ofstream(tokens) << "[[1, 70, 80, 90, 100], [1, 75]]";
  const Json scored = Json::parse(
      TinyJob::must({"score", "--model", model().string(), "--tokens", tokens.string()}).out);
  for (size_t i = 0; i < 2; ++i) {
    const Json& logprobs = json["choices"][i]["logprobs"];
    const Json& given = logprobs["token_logprobs"];
    const Json& wanted = scored.is_array() ? scored[i] : scored["logprobs"][i];
    ASSERT_EQ(given.size(), wanted.size() + 1);
    EXPECT_TRUE(given[0].is_null());
    EXPECT_TRUE(logprobs["top_logprobs"][0].is_null());
    for (size_t k = 1; k < wanted.size(); ++k) {
      EXPECT_EQ(given[k].get<float>(), wanted[k].get<float>()) << i << " " << k;
      double most = -1e9;
      for (const auto& [token, logprob] : logprobs["top_logprobs"][k].items()) {
        most = std::max(most, logprob.get<double>());
      }
      EXPECT_GE(most, given[k].get<double>());
    }
    // The new token is the likeliest one.
    EXPECT_EQ(logprobs["top_logprobs"].back().size(), 1U);
  }
}

// A text of one token more than the model is meant for: its last entry says nothing.
TEST_F(Serve, ScoresATextOfTheModelsLengthAndOne) {
  const auto prompt = [](size_t size) {
    return fmt::format(R"({{"prompt": [1{}], "max_tokens": 1, "logprobs": 1, "echo": true}})", [&] {
      std::string ids;
      for (size_t i = 1; i < size; ++i) ids += fmt::format(",{}", 10 + i % 300);
      return ids;
    }());
  };
  const Json json = server().completion(prompt(257));
  const Json& logprobs = json["choices"][0]["logprobs"]["token_logprobs"];
  ASSERT_EQ(logprobs.size(), 258U);
  EXPECT_TRUE(logprobs[256].is_number());
  EXPECT_TRUE(logprobs[257].is_null());
  EXPECT_EQ(json["usage"]["completion_tokens"], 0);
  const Answer refused = server().ask("/v1/completions", prompt(258));
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.error(), HasSubstr("256 tokens, and prompt has 258 with 1 more"));
  EXPECT_EQ(refused.json()["error"]["code"], "context_length_exceeded");
}

TEST_F(Serve, StreamsTheSameText) {
  const std::string rest = R"("prompt": "The", "max_tokens": 30, "seed": 5, "n": 2, "logprobs": 2)";
  const Json whole = server().completion("{" + rest + "}");
  const Answer answer =
      server().ask("/v1/completions",
                   "{" + rest + R"(, "stream": true, "stream_options": {"include_usage": true}})");
  std::vector<std::string> texts(2);
  std::vector<Json> tokens(2, Json::array());
  const std::vector<Json> streamed = events(answer.body);
  for (const Json& event : streamed) {
    for (const Json& choice : event["choices"]) {
      texts[choice["index"].get<size_t>()] += choice["text"].get<std::string>();
      for (const Json& token : choice["logprobs"]["tokens"]) {
        tokens[choice["index"].get<size_t>()].push_back(token);
      }
    }
  }
  EXPECT_GT(streamed.size(), 20U);
  EXPECT_EQ(streamed.back()["usage"], whole["usage"]);
  EXPECT_TRUE(streamed.front()["usage"].is_null());
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(texts[i], whole["choices"][i]["text"]);
    EXPECT_EQ(tokens[i], whole["choices"][i]["logprobs"]["tokens"]);
    EXPECT_EQ(tokens[i].size(), 30U);
  }
  EXPECT_NE(texts[0], texts[1]);
}

TEST_F(Serve, GivesTheSameTextForASeedInAnyCompany) {
  const std::string body = R"({"prompt": "A", "max_tokens": 25, "seed": 11})";
  const Json alone = server().completion(body)["choices"];
  std::vector<std::future<Json>> others;
  for (int i = 0; i < 6; ++i) {
    others.push_back(std::async(std::launch::async, [&, i] {
      const std::string other =
          fmt::format(R"({{"prompt": "Other {}", "max_tokens": {}, "seed": {}}})", i, 5 + i * 7, i);
      return server().completion(i % 2 == 0 ? other : body)["choices"];
    }));
  }
  for (size_t i = 0; i < others.size(); ++i) {
    const Json choices = others[i].get();
    if (i % 2 == 1) {
      EXPECT_EQ(choices, alone);
    }
  }
}

TEST_F(Serve, EndsAtStopTexts) {
  const Json whole =
      server().completion(R"({"prompt": "The", "max_tokens": 40, "temperature": 0})");
  const std::string text = whole["choices"][0]["text"];
  const std::string stop = text.substr(text.size() / 2, 3);
  const Json json = server().completion(json_text(Json{
      {"prompt", "The"}, {"max_tokens", 40}, {"temperature", 0}, {"stop", stop}, {"logprobs", 0}}));
  const Json& choice = json["choices"][0];
  EXPECT_EQ(choice["text"], text.substr(0, text.find(stop)));
  EXPECT_EQ(choice["finish_reason"], "stop");
  std::string of_tokens;
  for (const Json& token : choice["logprobs"]["tokens"]) of_tokens += token.get<std::string>();
  EXPECT_TRUE(of_tokens.starts_with(choice["text"].get<std::string>())) << of_tokens;
}

TEST_F(Serve, TellsWhatItServes) {
  const Json models = server().ask("/v1/models").json();
  EXPECT_EQ(models["data"][0]["id"], "model");
  EXPECT_EQ(models["data"][0]["max_model_len"], 256);
  EXPECT_EQ(server().ask("/v1/models/model").json()["id"], "model");
  EXPECT_EQ(server().ask("/v1/models/other").status, 404);
  const Json ids = server()
                       .ask("/tokenize", R"({"prompt": "The tree", "add_special_tokens": false})")
                       .json()["tokens"];
  EXPECT_EQ(server().ask("/detokenize", json_text(Json{{"tokens", ids}})).json()["prompt"],
            "The tree");
  EXPECT_EQ(server().ask("/tokenizer_info").json()["eos_token"], "</s>");
  EXPECT_EQ(server().ask("/health").status, 200);
  EXPECT_THAT(server().ask("/metrics").body, HasSubstr("\nskein_serve_requests_answered_total "));
}

TEST_F(Serve, RefusesWhatItCannotAnswer) {
  const auto refused = [](const std::string& body, const std::string& why,
                          const std::string& path = "/v1/completions") {
    const Answer answer = server().ask(path, body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_THAT(answer.error(), HasSubstr(why)) << body;
  };
  refused("{\"prompt\": ", "the body: not valid JSON: at line 1");
  refused("[]", "expected a JSON object");
  refused("{}", "prompt is missing");
  refused(R"({"prompt": 5})", "prompt is 5: expected a string");
  refused(R"({"prompt": []})", "prompt is a list of 0");
  refused(R"({"prompt": [[]]})", "has no token");
  refused(R"({"prompt": [1, -1]})", "prompt is -1: expected token ids");
  refused(R"({"prompt": [1, 320]})",
          "token id 320, which has no token: expected ids from 0 to 319");
  refused(R"({"prompt": [1, 1e30]})", "expected token ids");
  refused(R"({"prompt": "a", "max_tokens": -1})", "max_tokens is -1: expected a whole number");
  refused(R"({"prompt": "a", "max_tokens": 300})", "the model is meant for 256 tokens");
  refused(R"({"prompt": "a", "max_tokens": 0})", "echo is not true");
  refused(R"({"prompt": "a", "temperature": "hot"})", "expected a number from 0");
  refused(R"({"prompt": "a", "n": 0})", "n is 0");
  refused(R"({"prompt": "a", "stop": [1]})", "stop is 1: expected a list of strings");
  refused(R"({"prompt": "a", "stop": ["b", ""]})", "expected texts that are not empty");
  refused(R"({"prompt": "a", "logit_bias": {"x": 1}})", "an object of token ids");
  refused(R"({"prompt": "a", "logit_bias": {"999": 1}})", "token id 999");
  refused(fmt::format(R"({{"prompt": [{}], "n": 128}})",
                      [] {
                        std::string prompts = "\"a\"";
                        for (int i = 0; i < 40; ++i) prompts += ", \"a\"";
                        return prompts;
                      }()),
          "41 prompts with n 128 are 5248 texts: expected at most 4096");
  refused(R"({"prompt": "a", "suffix": "b"})", "suffix is not supported");
  refused(R"({"prompt": "a", "best_of": 4})", "best_of 4 is not supported");
  refused(R"({"prompt": "a", "max_token": 4})",
          "\"max_token\" is no field of this request: did you mean max_tokens?");
  refused(R"({"prompt": "a", "stream_options": {}})", "stream is not true");
  refused(R"({"messages": [{"role": "user", "content": "hi"}]})", "has no chat template",
          "/v1/chat/completions");
  const Answer other = server().ask("/v1/completions", R"({"prompt": "a", "model": "gpt"})");
  EXPECT_EQ(other.status, 404);
  EXPECT_EQ(other.json()["error"]["code"], "model_not_found");
  EXPECT_EQ(server().ask("/v1/completions").status, 405);
  EXPECT_EQ(server().ask("/nothing").status, 404);
}

// Rows that only pad the vocabulary have no text, and may be among the likeliest.
TEST_F(Serve, OutlivesTokensWithoutAText) {
  job().trained("padded", {"run.steps=1", "model.vocab_size=2048"});
  const Server padded(job().run("padded"));
  const Json choice =
      padded.completion(R"({"prompt": "The tree", "max_tokens": 8, "logprobs": 20, "echo": true})")
          .at("choices")[0];
  const Json& logprobs = choice.at("logprobs");
  EXPECT_EQ(logprobs["tokens"].size(), logprobs["token_logprobs"].size());
  bool has_padding = false;  // of many likeliest ones without a text the object keeps one
  for (const Json& top : logprobs["top_logprobs"])
    has_padding |= top.is_object() && top.size() < 15;
  EXPECT_TRUE(has_padding);
  EXPECT_EQ(padded.ask("/v1/completions", R"({"prompt": [1, 1000], "echo": true})").status, 400);
  EXPECT_EQ(padded.ask("/health").status, 200);
}

// A template beside the tokenizer of an exported model.
TEST_F(Serve, ChatsWhereTheTokenizerHasATemplate) {
  const fs::path exported = job().folder / "hf";
  TinyJob::must({"checkpoint", "export", model().string(), "--out", exported.string()});
  std::ofstream(exported / "chat_template.jinja")
      << "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
         "{% if add_generation_prompt %}assistant:{% endif %}";
  const Server chats(exported, {"--served-model-name", "chatty"});
  const std::string rest =
      R"("messages": [{"role": "user", "content": "Hello"}], "temperature": 0, "max_tokens": 12)";
  const Answer answer =
      chats.ask("/v1/chat/completions", "{" + rest + R"(, "logprobs": true, "top_logprobs": 2})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json choice = answer.json()["choices"][0];
  EXPECT_EQ(choice["message"]["role"], "assistant");
  EXPECT_EQ(choice["logprobs"]["content"].size(), 12U);
  EXPECT_EQ(choice["logprobs"]["content"][0]["top_logprobs"].size(), 2U);
  const Json plain = chats.completion(
      R"({"prompt": "user: Hello\nassistant:", "temperature": 0, "max_tokens": 12})");
  EXPECT_THAT(plain["choices"][0]["text"].get<std::string>(),
              HasSubstr(choice["message"]["content"].get<std::string>()));
  std::string streamed;
  for (const Json& event :
       events(chats.ask("/v1/chat/completions", "{" + rest + R"(, "stream": true})").body)) {
    EXPECT_EQ(event["object"], "chat.completion.chunk");
    streamed += event["choices"][0]["delta"].value("content", "");
  }
  EXPECT_EQ(streamed, choice["message"]["content"]);
  const Answer refused =
      chats.ask("/v1/chat/completions", "{" + rest + R"(, "tools": [{"type": "function"}]})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.error(), HasSubstr("tools is not supported"));
  EXPECT_EQ(chats.ask("/v1/chat/completions", R"({"messages": [{"content": 5}]})").status, 400);
}

TEST_F(Serve, AsksForAKey) {
  const fs::path keys = job().folder / "keys";
  std::ofstream(keys) << "# of the team\nsesame\nother-key\n";
  const Server guarded(model(), {"--api-key-file", keys.string()});
  EXPECT_EQ(guarded.ask("/health").status, 200);
  EXPECT_EQ(guarded.ask("/v1/models").status, 401);
  EXPECT_EQ(guarded.ask("/v1/models", "", "Authorization: Bearer sesam").status, 401);
  EXPECT_EQ(guarded.ask("/v1/models", "", "Authorization: sesame").status, 401);
  EXPECT_EQ(guarded.ask("/v1/models", "", "Authorization: Bearer other-key").status, 200);
  EXPECT_EQ(guarded.ask("/v1/models", "", "Authorization: Bearer sesame").status, 200);
}

// One request may have more texts than the queue; behind it there is no room.
TEST_F(Serve, RefusesTextsBeyondItsQueue) {
  const Server busy(model(), {"--queue", "2", "--max-texts", "1"});
  auto many = std::async(std::launch::async, [&] {
    return busy.ask("/v1/completions", R"({"prompt": "a", "max_tokens": 250, "n": 128})");
  });
  const auto waits = [&] {
    const std::string page = busy.ask("/metrics").body;
    return page.find("skein_serve_texts_running 1\n") != std::string::npos;
  };
  ASSERT_TRUE(wait_until(waits, 20));
  const Answer refused = busy.ask("/v1/completions", R"({"prompt": "a", "max_tokens": 1})");
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.error(), HasSubstr("too many texts wait"));
  // One text of up to 256 tokens, and the one under way may have 251.
  const std::string page = busy.ask("/metrics").body;
  EXPECT_THAT(page, HasSubstr("skein_serve_cache_tokens 256\n"));
  EXPECT_THAT(page, HasSubstr("skein_serve_cache_tokens_held 256\n"));
  EXPECT_EQ(many.get().json()["choices"].size(), 128U);
  EXPECT_EQ(busy.ask("/v1/completions", R"({"prompt": "a", "max_tokens": 1})").status, 200);
}

TEST_F(Serve, LoadsARunsNewestCheckpointOnRequest) {
  const fs::path run = job().run("growing");
  job().trained("growing", {"run.steps=10"});
  const Server reloading(run);
  EXPECT_THAT(reloading.ask("/v1/models").body, HasSubstr("step-00000010"));
  const std::string body =
      R"({"prompt": "The", "max_tokens": 20, "temperature": 0, "logprobs": 0})";
  const Json before = reloading.completion(body)["choices"];
  job().trained("growing", {"run.steps=40"});
  EXPECT_EQ(reloading.completion(body)["choices"], before);
  const Answer answer = reloading.ask("/reload", "{}");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr("step-00000040"));
  EXPECT_NE(reloading.completion(body)["choices"], before);
  fs::rename(run, job().run("moved"));
  EXPECT_EQ(reloading.ask("/reload", "{}").status, 500);
  EXPECT_EQ(reloading.ask("/health").status, 200);
}

// What is under way at SIGTERM gets its answer.
TEST_F(Serve, StopsWhenItHasAnswered) {
  Server stopping(model());
  auto answer = std::async(std::launch::async, [&] {
    return stopping.ask("/v1/completions", R"({"prompt": "a", "max_tokens": 250})");
  });
  wait_until(
      [&] {
        return stopping.ask("/metrics").body.find("skein_serve_texts_running 1\n") !=
               std::string::npos;
      },
      20);
  const Outcome outcome = stopping.stop();
  EXPECT_EQ(answer.get().status, 200);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("SIGTERM: answering what is under way"));
}

TEST_F(Serve, RefusesAPlaceWhereItCannotListen) {
  const auto refused = [](const Arguments& options, const std::string& why) {
    Arguments arguments = {"serve", model().string()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Outcome outcome = run_skein(arguments);
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_THAT(outcome.err, HasSubstr(why));
  };
  refused({"--listen", "127.0.0.1:99999"}, "--listen 127.0.0.1:99999: expected ADDRESS:PORT");
  refused({"--listen", "example.org:80"}, "example.org");
  refused({"--max-length", "1000"}, "the model is meant for 256 tokens at most");
  const fs::path keys = job().folder / "no_keys";
  std::ofstream(keys) << "# none\n";
  refused({"--api-key-file", keys.string()}, "has no key");
}

}  // namespace
}  // namespace skein
