"""Where rows are stored. The engine sees one interface of a few products and sums."""
