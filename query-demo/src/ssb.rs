//! The queries of the Star Schema Benchmark (P. O'Neil, E. O'Neil, X. Chen: *The Star Schema Benchmark*, revision 3, 2009), over the tables that the crate `datagen` makes. The table of dates is
//! called ddate, since `date` is a reserved word.

/// Name and text of each query, in the order of its flights.
pub const QUERIES: [(&str, &str); 13] = [
    (
        "Q1.1",
        "SELECT sum(lo_extendedprice * lo_discount) AS revenue FROM lineorder, ddate \
         WHERE lo_orderdate = d_datekey AND d_year = 1993 AND lo_discount BETWEEN 1 AND 3 AND lo_quantity < 25",
    ),
    (
        "Q1.2",
        "SELECT sum(lo_extendedprice * lo_discount) AS revenue FROM lineorder, ddate \
         WHERE lo_orderdate = d_datekey AND d_yearmonthnum = 199401 AND lo_discount BETWEEN 4 AND 6 \
         AND lo_quantity BETWEEN 26 AND 35",
    ),
    (
        "Q1.3",
        "SELECT sum(lo_extendedprice * lo_discount) AS revenue FROM lineorder, ddate \
         WHERE lo_orderdate = d_datekey AND d_weeknuminyear = 6 AND d_year = 1994 AND lo_discount BETWEEN 5 AND 7 \
         AND lo_quantity BETWEEN 26 AND 35",
    ),
    (
        "Q2.1",
        "SELECT sum(lo_revenue) AS revenue, d_year, p_brand1 FROM lineorder, ddate, part, supplier \
         WHERE lo_orderdate = d_datekey AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey \
         AND p_category = 'MFGR#12' AND s_region = 'AMERICA' GROUP BY d_year, p_brand1 ORDER BY d_year, p_brand1",
    ),
    (
        "Q2.2",
        "SELECT sum(lo_revenue) AS revenue, d_year, p_brand1 FROM lineorder, ddate, part, supplier \
         WHERE lo_orderdate = d_datekey AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey \
         AND p_brand1 BETWEEN 'MFGR#2221' AND 'MFGR#2228' AND s_region = 'ASIA' \
         GROUP BY d_year, p_brand1 ORDER BY d_year, p_brand1",
    ),
    (
        "Q2.3",
        "SELECT sum(lo_revenue) AS revenue, d_year, p_brand1 FROM lineorder, ddate, part, supplier \
         WHERE lo_orderdate = d_datekey AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey \
         AND p_brand1 = 'MFGR#2239' AND s_region = 'EUROPE' GROUP BY d_year, p_brand1 ORDER BY d_year, p_brand1",
    ),
    (
        "Q3.1",
        "SELECT c_nation, s_nation, d_year, sum(lo_revenue) AS revenue FROM customer, lineorder, supplier, ddate \
         WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey \
         AND c_region = 'ASIA' AND s_region = 'ASIA' AND d_year >= 1992 AND d_year <= 1997 \
         GROUP BY c_nation, s_nation, d_year ORDER BY d_year ASC, revenue DESC",
    ),
    (
        "Q3.2",
        "SELECT c_city, s_city, d_year, sum(lo_revenue) AS revenue FROM customer, lineorder, supplier, ddate \
         WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey \
         AND c_nation = 'UNITED STATES' AND s_nation = 'UNITED STATES' AND d_year >= 1992 AND d_year <= 1997 \
         GROUP BY c_city, s_city, d_year ORDER BY d_year ASC, revenue DESC",
    ),
    (
        "Q3.3",
        "SELECT c_city, s_city, d_year, sum(lo_revenue) AS revenue FROM customer, lineorder, supplier, ddate \
         WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey \
         AND (c_city = 'UNITED KI1' OR c_city = 'UNITED KI5') AND (s_city = 'UNITED KI1' OR s_city = 'UNITED KI5') \
         AND d_year >= 1992 AND d_year <= 1997 GROUP BY c_city, s_city, d_year ORDER BY d_year ASC, revenue DESC",
    ),
    (
        "Q3.4",
        "SELECT c_city, s_city, d_year, sum(lo_revenue) AS revenue FROM customer, lineorder, supplier, ddate \
         WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey \
         AND (c_city = 'UNITED KI1' OR c_city = 'UNITED KI5') AND (s_city = 'UNITED KI1' OR s_city = 'UNITED KI5') \
         AND d_yearmonth = 'Dec1997' GROUP BY c_city, s_city, d_year ORDER BY d_year ASC, revenue DESC",
    ),
    (
        "Q4.1",
        "SELECT d_year, c_nation, sum(lo_revenue - lo_supplycost) AS profit FROM ddate, customer, supplier, part, lineorder \
         WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey AND lo_orderdate = d_datekey \
         AND c_region = 'AMERICA' AND s_region = 'AMERICA' AND (p_mfgr = 'MFGR#1' OR p_mfgr = 'MFGR#2') \
         GROUP BY d_year, c_nation ORDER BY d_year, c_nation",
    ),
    (
        "Q4.2",
        "SELECT d_year, s_nation, p_category, sum(lo_revenue - lo_supplycost) AS profit \
         FROM ddate, customer, supplier, part, lineorder \
         WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey AND lo_orderdate = d_datekey \
         AND c_region = 'AMERICA' AND s_region = 'AMERICA' AND (d_year = 1997 OR d_year = 1998) \
         AND (p_mfgr = 'MFGR#1' OR p_mfgr = 'MFGR#2') \
         GROUP BY d_year, s_nation, p_category ORDER BY d_year, s_nation, p_category",
    ),
    (
        "Q4.3",
        "SELECT d_year, s_city, p_brand1, sum(lo_revenue - lo_supplycost) AS profit \
         FROM ddate, customer, supplier, part, lineorder \
         WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey AND lo_orderdate = d_datekey \
         AND c_region = 'AMERICA' AND s_nation = 'UNITED STATES' AND (d_year = 1997 OR d_year = 1998) \
         AND p_category = 'MFGR#14' GROUP BY d_year, s_city, p_brand1 ORDER BY d_year, s_city, p_brand1",
    ),
];

/// Columns of lineorder that the queries read.
pub const LINEORDER_COLUMNS: [&str; 9] = [
    "lo_custkey",
    "lo_partkey",
    "lo_suppkey",
    "lo_orderdate",
    "lo_quantity",
    "lo_extendedprice",
    "lo_discount",
    "lo_revenue",
    "lo_supplycost",
];

/// Rows and sum of the measure of each query at scale factor 1, in the maintained dialect: computed by DuckDB on the same rows.
pub const ANSWERS_AT_SCALE_1: [(u64, i128); 13] = [
    (1, 446_031_203_850),
    (1, 98_714_004_603),
    (1, 26_232_701_005),
    (280, 167_367_870_111),
    (56, 38_805_906_609),
    (7, 4_190_307_393),
    (150, 899_714_860_448),
    (600, 30_886_343_624),
    (24, 1_370_596_161),
    (3, 14_950_816),
    (35, 315_355_590_068),
    (100, 76_343_099_524),
    (339, 1_560_267_813),
];

/// Sums of the measure at scale factor 100 that are known from an independent computation.
pub const ANSWERS_AT_SCALE_100: [(&str, i128); 3] = [
    ("Q1.2", 9_624_332_170_119),
    ("Q1.3", 2_604_026_374_315),
    ("Q3.4", 564_444_037 + 504_351_824 + 474_923_410 + 466_804_055),
];
