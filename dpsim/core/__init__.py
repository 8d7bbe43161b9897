"""The words everybody uses: loss, ledger, plan, schema, records, draws. No algorithm."""
