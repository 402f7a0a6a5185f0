// The examples of mbpp: three documents of its data set, as the task's utils.py has them.
#include <memory>

#include "skein/evaluate/requests/document_functions.h"

namespace skein {

using jinja::Value;

namespace {

struct Sample {
  int64_t task_id;
  const char *text, *code;
  const char* tests[3];
};
constexpr Sample kSamples[] = {
    {2,
     "Write a function to find the similar elements from the given two tuple lists.",
     "def similar_elements(test_tup1, test_tup2):\r\n"
     "  res = tuple(set(test_tup1) & set(test_tup2))\r\n"
     "  return (res) ",
     {"assert similar_elements((3, 4, 5, 6),(5, 7, 4, 10)) == (4, 5)",
      "assert similar_elements((1, 2, 3, 4),(5, 4, 3, 7)) == (3, 4)",
      "assert similar_elements((11, 12, 14, 13),(17, 15, 14, 13)) == (13, 14)"}},
    {3,
     "Write a python function to identify non-prime numbers.",
     "import math\r\n"
     "def is_not_prime(n):\r\n"
     "    result = False\r\n"
     "    for i in range(2,int(math.sqrt(n)) + 1):\r\n"
     "        if n % i == 0:\r\n"
     "            result = True\r\n"
     "    return result",
     {"assert is_not_prime(2) == False", "assert is_not_prime(10) == True",
      "assert is_not_prime(35) == True"}},
    {4,
     "Write a function to find the largest integers from a given list of numbers using heap queue "
     "algorithm.",
     "import heapq as hq\r\n"
     "def heap_queue_largest(nums,n):\r\n"
     "  largest_nums = hq.nlargest(n, nums)\r\n"
     "  return largest_nums",
     {"assert heap_queue_largest( [25, 35, 22, 85, 14, 65, 75, 22, 58],3)==[85, 75, 65] ",
      "assert heap_queue_largest( [25, 35, 22, 85, 14, 65, 75, 22, 58],2)==[85, 75] ",
      "assert heap_queue_largest( [25, 35, 22, 85, 14, 65, 75, 22, 58],5)==[85, 75, 65, 58, 35]"}},
};

}  // namespace

std::vector<Value> mbpp_samples() {
  std::vector<Value> samples;
  for (const Sample& sample : kSamples) {
    const auto dict = std::make_shared<jinja::Dict>();
    const auto set = [&](const char* key, Value value) {
      dict->set(Value::string(key), std::move(value));
    };
    set("task_id", Value::integer(sample.task_id));
    set("text", Value::string(sample.text));
    set("code", Value::string(sample.code));
    std::vector<Value> tests;
    for (const char* const test : sample.tests) tests.push_back(Value::string(test));
    set("test_list", Value::list(std::move(tests)));
    set("is_fewshot", Value::boolean(true));
    samples.push_back(Value::of(jinja::Kind::kDict, dict));
  }
  return samples;
}

}  // namespace skein
