#include "sequence/token_pages.hpp"

#include <map>
#include <random>
#include <vector>

#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace kvo;

namespace {

struct room {
    explicit room(const token_pages::size& s) {
        REQUIRE(memory.map(token_pages::bytes_for(s)));
        pages.place(memory, s);
        REQUIRE(memory.used() == token_pages::bytes_for(s));
    }
    std::vector<uint32_t> read(const token_history& h) {
        const uint32_t per_page = pages.page_tokens(),
                       per_block = per_page / pages.blocks_per_page();
        std::vector<uint32_t> list((h.n_tokens + per_page - 1) / per_page), out;
        pages.list(h, 0, list);
        for (const uint32_t page : list) {
            for (uint32_t i = 0; i < pages.blocks_per_page(); ++i) {
                const auto t = pages.tokens(page, i);
                out.insert(out.end(), t.begin(), t.begin() + per_block);
            }
        }
        out.resize(h.n_tokens);
        return out;
    }
    region memory;
    token_pages pages;
};

std::vector<uint32_t> count_up(uint32_t from, uint32_t n) {
    std::vector<uint32_t> out(n);
    for (uint32_t i = 0; i < n; ++i) out[i] = from + i;
    return out;
}

}  // namespace

TEST_CASE("Token pages hold whole blocks whatever the block size") {
    for (const uint32_t block : {1u, 3u, 16u, 24u, 128u, 130u, 512u}) {
        room r({block, 4, 4096});
        CHECK(r.pages.page_tokens() % block == 0);
        token_history h;
        const auto tokens = count_up(7, 2000);
        REQUIRE(r.pages.append(h, tokens));
        CHECK(r.read(h) == tokens);
        r.pages.cut(h, 0);
        CHECK(r.pages.free_pages() == r.pages.n_pages());
    }
}

TEST_CASE("As many tokens as promised fit, however they are spread over sequences") {
    const token_pages::size size{16, 8, 8 * 500};
    room r(size);
    std::vector<token_history> all(8);
    for (auto& h : all) REQUIRE(r.pages.append(h, count_up(0, 500)));
    for (auto& h : all) r.pages.cut(h, 0);
    token_history one;
    REQUIRE(r.pages.append(one, count_up(0, 4000)));
    CHECK(!r.pages.append(one, count_up(0, 100000)));
    CHECK(one.n_tokens == 4000);
    CHECK(r.read(one) == count_up(0, 4000));
}

TEST_CASE("A fork shares pages and each side goes on alone") {
    room r({16, 8, 4096});
    token_history a;
    REQUIRE(r.pages.append(a, count_up(0, 300)));
    const uint32_t used = r.pages.n_pages() - r.pages.free_pages();
    token_history b = r.pages.share(a, 290);
    CHECK(r.pages.n_pages() - r.pages.free_pages() == used);
    REQUIRE(r.pages.append(b, count_up(9000, 50)));
    REQUIRE(r.pages.append(a, count_up(5000, 50)));
    auto expect_a = count_up(0, 300), expect_b = count_up(0, 290);
    for (uint32_t i = 0; i < 50; ++i) expect_a.push_back(5000 + i), expect_b.push_back(9000 + i);
    CHECK(r.read(a) == expect_a);
    CHECK(r.read(b) == expect_b);
    r.pages.cut(a, 0);
    CHECK(r.read(b) == expect_b);
    r.pages.cut(b, 0);
    CHECK(r.pages.free_pages() == r.pages.n_pages());
}

TEST_CASE("The first token that differs is found in any page") {
    room r({16, 8, 4096});
    token_history h;
    REQUIRE(r.pages.append(h, count_up(0, 400)));
    CHECK(r.pages.common(h, count_up(0, 400)) == 400);
    CHECK(r.pages.common(h, count_up(0, 77)) == 77);
    CHECK(r.pages.common(h, count_up(0, 500)) == 400);
    for (const uint32_t at : {0u, 5u, 127u, 128u, 399u}) {
        auto other = count_up(0, 450);
        other[at] = 99999;
        other[399] = 99999;
        CHECK(r.pages.common(h, other) == at);
    }
}

TEST_CASE("Token pages agree with plain vectors under random append, cut and share") {
    std::mt19937_64 random(test::seed());
    for (int round = 0; round < 20; ++round) {
        const token_pages::size size{static_cast<uint32_t>(1 + random() % 40), 6, 3000};
        room r(size);
        std::map<uint32_t, std::pair<token_history, std::vector<uint32_t>>> all;
        uint32_t next = 0;
        for (int step = 0; step < 400; ++step) {
            const auto what = random() % 10;
            if (all.empty() || (what == 0 && all.size() < 6)) {
                all[next++] = {};
                continue;
            }
            auto it = all.begin();
            std::advance(it, static_cast<std::ptrdiff_t>(random() % all.size()));
            auto& [history, model] = it->second;
            if (what <= 4) {
                const auto more = count_up(static_cast<uint32_t>(random() % 1000000),
                                           static_cast<uint32_t>(random() % 200));
                const uint32_t free_before = r.pages.free_pages();
                if (r.pages.append(history, more)) {
                    model.insert(model.end(), more.begin(), more.end());
                } else {
                    CHECK(r.pages.free_pages() == free_before);
                }
            } else if (what <= 6) {
                const auto keep = static_cast<uint32_t>(random() % (model.size() + 1));
                r.pages.cut(history, keep);
                model.resize(keep);
            } else if (what == 7 && all.size() < 6) {
                const auto keep = static_cast<uint32_t>(random() % (model.size() + 1));
                auto forked = std::make_pair(r.pages.share(history, keep), model);
                forked.second.resize(keep);
                all[next++] = forked;
            } else if (what == 8) {
                r.pages.cut(history, 0);
                all.erase(it);
            }
            for (auto& [id, one] : all) REQUIRE(r.read(one.first) == one.second);
        }
        for (auto& [id, one] : all) r.pages.cut(one.first, 0);
        REQUIRE(r.pages.free_pages() == r.pages.n_pages());
    }
}
