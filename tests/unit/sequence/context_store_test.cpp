#include "sequence/context_store.hpp"

#include <random>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace kvo;

namespace {

struct room {
    explicit room(uint64_t bytes) {
        REQUIRE(memory.map(context_store::bytes_for(bytes)));
        store.place(memory, bytes);
        REQUIRE(memory.used() == context_store::bytes_for(bytes));
    }
    context_id follow(context_id earlier, uint32_t begin, uint32_t count, const std::string& text) {
        return store.follow(earlier, begin, count,
                            {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    }
    std::string text(context_id id) {
        std::string out;
        store.read(id, [&](const uint8_t* data, uint32_t n) {
            out.append(reinterpret_cast<const char*>(data), n);
        });
        return out;
    }
    region memory;
    context_store store;
};

}  // namespace

TEST_CASE("Equal contexts have one id, different ones differ in every part") {
    room r(1 << 14);
    const context_id salt = r.follow(kNoContext, 0, 0, "tenant");
    CHECK(r.follow(kNoContext, 0, 0, "tenant") == salt);
    CHECK(r.follow(kNoContext, 0, 0, "tenanT") != salt);
    const context_id image = r.follow(salt, 64, 32, "picture");
    CHECK(r.follow(salt, 64, 32, "picture") == image);
    for (const context_id other :
         {r.follow(kNoContext, 64, 32, "picture"), r.follow(salt, 65, 32, "picture"),
          r.follow(salt, 64, 31, "picture"), r.follow(salt, 64, 32, "pictura"),
          r.follow(image, 64, 32, "picture")}) {
        CHECK(other != image);
    }
}

TEST_CASE("Bytes of any length come back whole") {
    room r(1 << 16);
    for (const uint32_t n : {1u, 63u, 64u, 65u, 128u, 4096u}) {
        std::string text(n, 'x');
        for (uint32_t i = 0; i < n; ++i) text[i] = static_cast<char>(i * 31 + n);
        CHECK(r.text(r.follow(kNoContext, n, 1, text)) == text);
    }
}

TEST_CASE("A context that does not fit is refused and nothing is lost") {
    room r(256);
    const context_id a = r.follow(kNoContext, 0, 0, std::string(200, 'a'));
    REQUIRE(a != kNoContextRoom);
    CHECK(r.store.free_bytes() == 0);
    CHECK(r.follow(kNoContext, 0, 0, "b") == kNoContextRoom);
    CHECK(r.follow(kNoContext, 0, 0, std::string(200, 'a')) == a);  // is here already
    r.store.let_go(a);
    CHECK(r.store.free_bytes() == 0);
    r.store.let_go(a);
    CHECK(r.store.free_bytes() == 256);
    CHECK(r.follow(kNoContext, 0, 0, "b") != kNoContextRoom);
    room none(0);
    CHECK(none.follow(kNoContext, 0, 0, "b") == kNoContextRoom);
}

TEST_CASE("A later context keeps the earlier ones") {
    room r(1 << 12);
    const context_id a = r.follow(kNoContext, 0, 0, "salt");
    const context_id b = r.follow(a, 10, 4, "one");
    const context_id c = r.follow(b, 20, 40, "two");
    r.store.let_go(a);
    r.store.let_go(b);
    CHECK(r.text(a) == "salt");
    CHECK(r.store.before(c, 21) == c);
    CHECK(r.store.before(c, 20) == b);
    CHECK(r.store.before(c, 10) == a);
    CHECK(r.store.before(c, 0) == a);
    CHECK(r.store.at(c).max_end == 60);
    r.store.let_go(c);
    CHECK(r.store.free_bytes() == r.store.capacity_bytes());
}

TEST_CASE("Room for contexts comes back under random use") {
    std::mt19937_64 random(test::seed());
    room r(1 << 13);
    std::vector<std::pair<context_id, std::string>> held;
    for (int step = 0; step < 20000; ++step) {
        if (random() % 2 == 0 || held.empty()) {
            const std::string text(1 + random() % 200, static_cast<char>('a' + random() % 3));
            const context_id on =
                held.empty() || random() % 2 == 0 ? kNoContext : held[random() % held.size()].first;
            const auto begin = static_cast<uint32_t>(random() % 3);
            const context_id id = r.follow(on, begin, 1, text);
            if (id != kNoContextRoom) held.emplace_back(id, text);
        } else {
            const size_t i = random() % held.size();
            r.store.let_go(held[i].first);
            held[i] = held.back();
            held.pop_back();
        }
        if (!held.empty()) {
            const auto& [id, text] = held[random() % held.size()];
            REQUIRE(r.text(id) == text);
        }
    }
    for (const auto& [id, text] : held) r.store.let_go(id);
    CHECK(r.store.free_bytes() == r.store.capacity_bytes());
}
